SELECT {schema}.bury_work_1($1, $2, $3)
