-- Which functions hold more memory at the peak on the last day than on the first? Bytes are means over
-- the runs of a day.
WITH days AS (SELECT service, min(date) AS first_date, max(date) AS last_date FROM sites GROUP BY service),
runs AS (SELECT service, date, count(DISTINCT run) AS runs FROM sites GROUP BY service, date),
means AS (
    SELECT s.service, s.date, f.func, sum(s.at_peak_bytes) / max(r.runs) AS bytes
    FROM sites s
    JOIN runs r ON r.service = s.service AND r.date = s.date
    JOIN functions f ON f.run = s.run AND f.stack = s.stack
    GROUP BY s.service, s.date, f.func)
SELECT y.service, y.func, coalesce(x.bytes, 0) AS bytes_first, y.bytes AS bytes_last
FROM days d
JOIN means y ON y.service = d.service AND y.date = d.last_date
LEFT JOIN means x ON x.service = d.service AND x.date = d.first_date AND x.func = y.func
WHERE y.bytes > coalesce(x.bytes, 0)
ORDER BY y.bytes - coalesce(x.bytes, 0) DESC, y.service, y.func
LIMIT 20
