-- The sequence of the test sets the time of the store. Every transaction sees a new value of a sequence of the server at once.
SET synchronous_commit = off;
CREATE SEQUENCE {schema}.hand;
CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT last_value FROM {schema}.hand $$;

-- Texts in Rust's debug format; the sequences hold no characters that this format escapes.
CREATE FUNCTION {schema}.shown(p_text text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT '"' || p_text || '"' $$;
CREATE FUNCTION {schema}.shown_option(p_text text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT coalesce('Some("' || p_text || '")', 'None') $$;

-- The largest time is half as large in these tables, so that the server can add to it.
CREATE FUNCTION {schema}.shown_time(p_time bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN p_time > 4000000000000000000 THEN 9223372036854775807 ELSE p_time END $$;
