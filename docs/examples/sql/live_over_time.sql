-- How many bytes are in use over time? A row for each fiftieth of a run.
WITH changes AS (
    SELECT run, t0 AS t, size AS bytes FROM allocs
    UNION ALL
    SELECT run, t1, -size FROM allocs WHERE t1 IS NOT NULL),
ends AS (SELECT run, max(t) + 1 AS t_end FROM changes GROUP BY run),
steps AS (
    SELECT c.run, CAST(floor(c.t * 50.0 / e.t_end) AS INT) AS step, sum(c.bytes) AS bytes
    FROM changes c JOIN ends e ON e.run = c.run
    GROUP BY 1, 2)
SELECT run, step, sum(bytes) OVER (PARTITION BY run ORDER BY step) AS live_bytes
FROM steps
ORDER BY run, step
