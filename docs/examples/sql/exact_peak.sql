-- When are the most bytes in use, and how many? The query first finds the milliseconds that can have
-- the peak, and reads only their events one by one. A realloc that does not move a block changes its size.
WITH blocks AS (SELECT run, alloc, t0, t1, size0 AS size FROM allocs),
sizes AS (
    SELECT run, alloc, t_ns, size FROM events
    WHERE op = 25 AND alloc >= 0 AND alloc = old_alloc),
resized AS (
    SELECT s.run, s.t_ns, s.size, b.t1,
        coalesce(lag(s.size) OVER (PARTITION BY s.run, s.alloc ORDER BY s.t_ns), b.size) AS size_before
    FROM sizes s JOIN blocks b ON b.run = s.run AND b.alloc = s.alloc),
changes AS (
    SELECT run, t0 AS t, floor(t0 / 1000000) AS ms, size AS bytes FROM blocks
    UNION ALL
    SELECT run, t1, floor(t1 / 1000000), -size FROM blocks WHERE t1 IS NOT NULL
    UNION ALL
    SELECT run, t_ns, floor(t_ns / 1000000), size - size_before FROM resized
    UNION ALL
    SELECT run, t1, floor(t1 / 1000000), size_before - size FROM resized WHERE t1 IS NOT NULL),
steps AS (
    SELECT run, ms, sum(bytes) AS bytes, sum(greatest(bytes, 0)) AS allocated
    FROM changes GROUP BY run, ms),
bounds AS (
    SELECT run, ms, bytes, allocated,
        sum(bytes) OVER (PARTITION BY run ORDER BY ms) - bytes AS live_before
    FROM steps),
least_peaks AS (SELECT run, max(live_before + bytes) AS bytes FROM bounds GROUP BY run),
candidates AS (
    SELECT b.run, b.ms, b.live_before
    FROM bounds b JOIN least_peaks p ON p.run = b.run AND b.live_before + b.allocated >= p.bytes),
live AS (
    SELECT c.run, c.t, d.live_before + sum(c.bytes) OVER (
        PARTITION BY c.run, c.ms ORDER BY c.t, c.bytes DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM changes c JOIN candidates d ON d.run = c.run AND d.ms = c.ms),
peaks AS (SELECT run, max(bytes) AS bytes FROM live GROUP BY run)
SELECT p.run, p.bytes AS peak_bytes, min(l.t) AS t_ns
FROM peaks p JOIN live l ON l.run = p.run AND l.bytes = p.bytes
GROUP BY p.run, p.bytes
ORDER BY p.run
