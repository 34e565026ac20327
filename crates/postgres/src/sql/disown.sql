-- An owner that holds no lease leaves nothing to end.
DELETE FROM {schema}.owners WHERE owner = $1 AND NOT {schema}.holds_lease_1($1)
