-- A store that is closed is not dead: leases that it has left end by time.
DELETE FROM {schema}.owners WHERE owner = $1
