-- Which functions hold the memory at the peak of the program?
SELECT s.service, f.func, sum(s.at_peak_bytes) AS bytes, count(*) AS sites
FROM sites s JOIN functions f ON f.run = s.run AND f.stack = s.stack
WHERE s.at_peak_bytes > 0
GROUP BY s.service, f.func
ORDER BY bytes DESC, service, func
LIMIT 20
