SELECT * FROM {schema}.fetch_activities_1($1, $2, $3, $4, $5, $6)
