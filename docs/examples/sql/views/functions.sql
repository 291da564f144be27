-- The function of each call stack that says most: the innermost of four functions that does not only
-- pass the allocation on, or else the innermost.
WITH calls AS (
    SELECT s.service, s.date, s.run, s.node, s.parent, f.func, f.file, f.line,
        f.func LIKE 'operator new%' OR f.func LIKE 'operator delete%'
        OR f.func LIKE 'std::allocator%' OR f.func LIKE 'std::__new_allocator%'
        OR f.func LIKE '__gnu_cxx::new_allocator%' OR f.func LIKE 'std::_Vector_base%'
        OR f.func LIKE 'alloc::%' OR f.func LIKE '<alloc::%' OR f.func LIKE '__rust_%'
        OR f.func LIKE 'xmalloc%' OR f.func LIKE 'xcalloc%' OR f.func LIKE 'xrealloc%'
        OR f.func LIKE 'g_malloc%' AS passes_on
    FROM stacks s JOIN frames f ON f.run = s.run AND f.frame = s.frame
    WHERE s.node > 0)
SELECT a.node AS stack,
    CASE WHEN NOT a.passes_on THEN a.func WHEN NOT b.passes_on THEN b.func
        WHEN NOT c.passes_on THEN c.func WHEN NOT d.passes_on THEN d.func ELSE a.func END AS func,
    CASE WHEN NOT a.passes_on THEN a.file WHEN NOT b.passes_on THEN b.file
        WHEN NOT c.passes_on THEN c.file WHEN NOT d.passes_on THEN d.file ELSE a.file END AS file,
    CASE WHEN NOT a.passes_on THEN a.line WHEN NOT b.passes_on THEN b.line
        WHEN NOT c.passes_on THEN c.line WHEN NOT d.passes_on THEN d.line ELSE a.line END AS line,
    a.service, a.date, a.run
FROM calls a
LEFT JOIN calls b ON b.run = a.run AND b.node = a.parent
LEFT JOIN calls c ON c.run = b.run AND c.node = b.parent
LEFT JOIN calls d ON d.run = c.run AND d.node = c.parent
