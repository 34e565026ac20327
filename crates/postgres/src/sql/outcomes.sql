SELECT * FROM {schema}.outcomes_1($1)
