SELECT {schema}.set_aside_1($1)
