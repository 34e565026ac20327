-- Whether a text can be a message or an activity. Other texts are ignored until they are made dead letters.
CREATE FUNCTION {schema}.is_item_1(p_text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT p_text LIKE '{"%}}' $$;
