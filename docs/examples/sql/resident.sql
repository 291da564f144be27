-- How many bytes are resident at the peak of the resident memory, and how many bytes are in use then?
WITH peaks AS (SELECT run, max(rss) AS rss FROM samples GROUP BY run)
SELECT s.service, s.run, p.rss, min(s.t_ns) AS t_ns, min(s.live_bytes) AS live_bytes
FROM peaks p JOIN samples s ON s.run = p.run AND s.rss = p.rss
GROUP BY s.service, s.run, p.rss
ORDER BY p.rss DESC, s.run
