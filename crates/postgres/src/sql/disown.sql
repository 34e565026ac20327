-- A closed store is not dead: the leases that it has left end by time.
DELETE FROM {schema}.owners WHERE owner = $1
