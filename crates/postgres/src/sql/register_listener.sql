SELECT {schema}.register_listener_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
