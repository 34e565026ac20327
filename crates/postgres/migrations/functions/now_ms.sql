-- The time of the store.
CREATE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT floor(date_part('epoch', clock_timestamp()) * 1000)::bigint $$;
