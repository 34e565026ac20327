SELECT {schema}.release_1($1)
