-- How large is the peak of each service on each day, at most and on average over its runs?
WITH runs AS (
    SELECT service, date, run, sum(at_peak_bytes) AS peak FROM sites GROUP BY service, date, run)
SELECT service, date, count(*) AS runs, max(peak) AS most, avg(peak) AS mean
FROM runs
GROUP BY service, date
ORDER BY service, date
