SELECT count(*) FROM history
