SELECT {schema}.end_leases_1($1, $2, $3) AS ended
