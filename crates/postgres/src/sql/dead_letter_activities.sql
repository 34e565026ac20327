SELECT {schema}.dead_letter_activities_1($1, $2, $3)
