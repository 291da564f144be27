-- Which functions hold memory the longest, in bytes times seconds?
WITH ends AS (SELECT run, max(t_ns) AS t_end FROM events GROUP BY run)
SELECT a.service, f.func,
    sum(CAST(a.size AS DOUBLE) * (coalesce(a.t1, e.t_end) - a.t0)) / 1000000000 AS byte_seconds
FROM allocs a
JOIN ends e ON e.run = a.run
JOIN functions f ON f.run = a.run AND f.stack = a.stack0
GROUP BY a.service, f.func
ORDER BY byte_seconds DESC, service, func
LIMIT 20
