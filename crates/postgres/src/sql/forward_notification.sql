SELECT {schema}.pass_on_1($1, $2, $3, $4, $5)
