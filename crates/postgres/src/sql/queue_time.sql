-- The server's time.
SELECT {schema}.now_ms() AS now
