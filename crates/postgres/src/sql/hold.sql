SELECT h.o_answer, h.o_until FROM {schema}.hold_1($1, $2, $3, $4) AS h
