-- How long do blocks of each size live? A row for each power of two, with the 50th and 90th percentile.
SELECT service, CAST(power(2, length(bin(greatest(size, 2) - 1))) AS BIGINT) AS size_at_most,
    count(*) AS blocks, count(t1) AS freed,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY t1 - t0) AS life_p50_ns,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY t1 - t0) AS life_p90_ns
FROM allocs
GROUP BY 1, 2
ORDER BY 1, 2
