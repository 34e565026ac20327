DELETE FROM {schema}.listeners WHERE id = $1
