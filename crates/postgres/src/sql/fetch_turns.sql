SELECT * FROM {schema}.fetch_turns_1($1, $2, $3, $4, $5, $6, $7)
