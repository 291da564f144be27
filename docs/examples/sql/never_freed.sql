-- Which functions allocate blocks that are never freed?
SELECT s.service, f.func, sum(s.live_bytes) AS bytes, sum(s.live_allocs) AS blocks
FROM sites s JOIN functions f ON f.run = s.run AND f.stack = s.stack
WHERE s.live_allocs > 0
GROUP BY s.service, f.func
ORDER BY bytes DESC, service, func
LIMIT 20
