SELECT runs, count(*) FROM (SELECT count(*) AS runs FROM attempts GROUP BY key) GROUP BY runs ORDER BY runs
