-- One function for each call stack: the first of the four innermost functions that does more than pass
-- the allocation on. If all four only pass the allocation on, the innermost of them.
WITH names AS (
    SELECT run, frame, func, file, line,
        func LIKE 'operator new%' OR func LIKE 'operator delete%'
        OR func LIKE 'std::allocator%' OR func LIKE 'std::__new_allocator%'
        OR func LIKE '__gnu_cxx::new_allocator%' OR func LIKE 'std::_Vector_base%'
        OR func LIKE 'alloc::%' OR func LIKE '<alloc::%' OR func LIKE '__rust_%'
        OR func LIKE 'xmalloc%' OR func LIKE 'xcalloc%' OR func LIKE 'xrealloc%'
        OR func LIKE 'g_malloc%' AS passes_on
    FROM frames),
calls AS (
    SELECT s.service, s.date, s.run, s.node, s.frame, n.passes_on,
        CASE WHEN n.passes_on THEN s.parent END AS further
    FROM stacks s JOIN names n ON n.run = s.run AND n.frame = s.frame
    WHERE s.node > 0),
chosen AS (
    SELECT a.service, a.date, a.run, a.node AS stack,
        CASE WHEN NOT a.passes_on THEN a.frame WHEN NOT b.passes_on THEN b.frame
            WHEN NOT c.passes_on THEN c.frame WHEN NOT d.passes_on THEN d.frame
            ELSE a.frame END AS frame
    FROM calls a
    LEFT JOIN calls b ON b.run = a.run AND b.node = a.further
    LEFT JOIN calls c ON c.run = b.run AND c.node = b.further
    LEFT JOIN calls d ON d.run = c.run AND d.node = c.further)
SELECT c.stack, n.func, n.file, n.line, c.service, c.date, c.run
FROM chosen c JOIN names n ON n.run = c.run AND n.frame = c.frame
