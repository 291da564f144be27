-- Which functions spend the most time in malloc?
SELECT s.service, f.func, sum(s.call_ns) AS ns, sum(s.timed_calls) AS timed_calls
FROM sites s JOIN functions f ON f.run = s.run AND f.stack = s.stack
WHERE s.timed_calls > 0
GROUP BY s.service, f.func
ORDER BY ns DESC, service, func
LIMIT 20
