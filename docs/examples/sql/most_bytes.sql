-- Which functions allocate the most bytes, in how many blocks?
SELECT s.service, f.func, sum(s.bytes) AS bytes, sum(s.allocs) AS blocks,
    sum(s.bytes) / sum(s.allocs) AS mean_size
FROM sites s JOIN functions f ON f.run = s.run AND f.stack = s.stack
WHERE s.allocs > 0
GROUP BY s.service, f.func
ORDER BY bytes DESC, service, func
LIMIT 20
