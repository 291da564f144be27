-- Which blocks outlive the request in which they were allocated? Here, the request is the middle third
-- of each run. Replace t_begin and t_end by the start and end of your request.
WITH requests AS (
    SELECT run, max(t_ns) / 3 AS t_begin, max(t_ns) / 3 * 2 AS t_end FROM events GROUP BY run)
SELECT a.service, f.func, count(*) AS blocks, sum(a.size) AS bytes
FROM allocs a
JOIN requests r ON r.run = a.run AND a.t0 BETWEEN r.t_begin AND r.t_end
JOIN functions f ON f.run = a.run AND f.stack = a.stack0
WHERE a.t1 IS NULL OR a.t1 > r.t_end
GROUP BY a.service, f.func
ORDER BY bytes DESC, service, func
LIMIT 20
