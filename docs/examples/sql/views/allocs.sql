-- The blocks of one trace, derived from its events. `old_alloc` of a realloc is the block that was passed to realloc.
-- A realloc that leaves the block where it was changes its size from `size0` to `size`.
WITH begins AS (
    SELECT * FROM events
    WHERE alloc >= 0 AND op < 32 AND op <> 2 AND alloc IS DISTINCT FROM old_alloc),
ends AS (
    SELECT alloc AS ended, t_ns, tid, stack FROM events WHERE alloc >= 0 AND (op >= 32 OR op = 2)
    UNION ALL
    SELECT old_alloc, t_ns, tid, stack FROM events
    WHERE old_alloc >= 0 AND alloc <> old_alloc AND (alloc >= 0 OR size = 0)),
resized AS (
    SELECT alloc AS block, max_by(size, t_ns) AS last_size FROM events
    WHERE alloc >= 0 AND alloc = old_alloc GROUP BY alloc)
SELECT b.alloc, b.proc, b.t_ns AS t0, e.t_ns AS t1, coalesce(r.last_size, b.size) AS size, b.align, b.addr, b.stack AS stack0,
    e.stack AS stack1, b.tid AS tid0, e.tid AS tid1, b.size AS size0, b.service, b.date, b.run
FROM begins b LEFT JOIN ends e ON e.ended = b.alloc LEFT JOIN resized r ON r.block = b.alloc
