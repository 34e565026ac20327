SELECT {schema}.bury_activities_1($1, $2, $3)
