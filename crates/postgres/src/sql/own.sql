SELECT {schema}.own_1($1) AS server_process
