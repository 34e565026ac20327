-- All time of the store is what the sequence says. A setting of a sequence is seen at once by everybody, in any transaction.
SET synchronous_commit = off;
CREATE SEQUENCE {schema}.hand;
CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT last_value FROM {schema}.hand $$;

-- Texts as Rust shows them for debugging; sequences have none with characters that it would escape.
CREATE FUNCTION {schema}.shown(p_text text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT '"' || p_text || '"' $$;
CREATE FUNCTION {schema}.shown_option(p_text text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT coalesce('Some("' || p_text || '")', 'None') $$;

-- For ever is half as long here, so that the server can add to it.
CREATE FUNCTION {schema}.shown_time(p_time bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN p_time > 4000000000000000000 THEN 9223372036854775807 ELSE p_time END $$;
