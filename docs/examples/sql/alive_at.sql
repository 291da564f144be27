-- What was in use at second 3?
SELECT a.service, f.func, count(*) AS blocks, sum(a.size) AS bytes
FROM allocs a JOIN functions f ON f.run = a.run AND f.stack = a.stack0
WHERE a.t0 <= 3000000000 AND (a.t1 IS NULL OR a.t1 > 3000000000)
GROUP BY a.service, f.func
ORDER BY bytes DESC, service, func
LIMIT 20
