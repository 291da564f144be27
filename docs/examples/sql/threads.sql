-- Which blocks does one thread allocate and another free?
SELECT a.service, x.name AS allocated_by, y.name AS freed_by, count(*) AS blocks,
    sum(a.size) AS bytes
FROM allocs a
JOIN threads x ON x.run = a.run AND x.tid = a.tid0
JOIN threads y ON y.run = a.run AND y.tid = a.tid1
WHERE a.tid0 <> a.tid1
GROUP BY a.service, x.name, y.name
ORDER BY blocks DESC, service, allocated_by, freed_by
LIMIT 20
