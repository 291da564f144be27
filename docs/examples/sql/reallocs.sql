-- Which functions grow their blocks by realloc, and how often does a block move?
SELECT e.service, f.func, count(*) AS reallocs,
    sum(CASE WHEN e.alloc <> e.old_alloc THEN 1 ELSE 0 END) AS moves, max(e.size) AS largest
FROM events e JOIN functions f ON f.run = e.run AND f.stack = e.stack
WHERE e.op = 25 AND e.alloc >= 0 AND e.old_alloc >= 0
GROUP BY e.service, f.func
ORDER BY reallocs DESC, service, func
LIMIT 20
