-- When are the most bytes in use, and how many? A realloc that does not move its block changes its size.
WITH sizes AS (
    SELECT run, alloc, t_ns, size FROM events
    WHERE op = 25 AND alloc >= 0 AND alloc = old_alloc),
resized AS (
    SELECT s.run, s.t_ns, s.size, a.t1,
        coalesce(lag(s.size) OVER (PARTITION BY s.run, s.alloc ORDER BY s.t_ns), a.size) AS size_before
    FROM sizes s JOIN allocs a ON a.run = s.run AND a.alloc = s.alloc),
changes AS (
    SELECT run, t0 AS t, size AS bytes FROM allocs
    UNION ALL
    SELECT run, t1, -size FROM allocs WHERE t1 IS NOT NULL
    UNION ALL
    SELECT run, t_ns, size - size_before FROM resized
    UNION ALL
    SELECT run, t1, size_before - size FROM resized WHERE t1 IS NOT NULL),
live AS (
    SELECT run, t, sum(bytes) OVER (
        PARTITION BY run ORDER BY t, bytes DESC ROWS UNBOUNDED PRECEDING) AS live_bytes
    FROM changes),
peaks AS (SELECT run, max(live_bytes) AS peak_bytes FROM live GROUP BY run)
SELECT p.run, p.peak_bytes, min(l.t) AS t_ns
FROM peaks p JOIN live l ON l.run = p.run AND l.live_bytes = p.peak_bytes
GROUP BY p.run, p.peak_bytes
ORDER BY p.run
