-- Which sites hold the memory at the peak, and what share of it does each site hold?
SELECT s.run, s.stack, f.func, f.line, s.at_peak_bytes AS bytes, s.peak_share
FROM sites s JOIN functions f ON f.run = s.run AND f.stack = s.stack
WHERE s.at_peak_bytes > 0
ORDER BY bytes DESC, run, s.stack
LIMIT 20
