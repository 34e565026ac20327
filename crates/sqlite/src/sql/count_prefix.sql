SELECT count(*) FROM
