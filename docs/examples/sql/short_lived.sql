-- Which functions allocate blocks that are freed before their thread allocates the next block?
SELECT s.service, f.func, sum(s.short_lived) AS short_lived, sum(s.allocs) AS blocks,
    sum(s.short_lived) / sum(s.allocs) AS share
FROM sites s JOIN functions f ON f.run = s.run AND f.stack = s.stack
WHERE s.short_lived > 0
GROUP BY s.service, f.func
ORDER BY short_lived DESC, service, func
LIMIT 20
