SELECT {schema}.hold_turn_1($1, $2, $3, $4, $5)
