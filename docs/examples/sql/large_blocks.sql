-- Which blocks are the largest, who allocates them, and how long do they live?
SELECT a.run, a.alloc, a.size, f.func, a.t1 - a.t0 AS life_ns
FROM allocs a JOIN functions f ON f.run = a.run AND f.stack = a.stack0
ORDER BY a.size DESC, a.run, a.alloc
LIMIT 20
