-- The keys of messages are stored with the instance, in one statement: the function is of an earlier migration.
WITH done AS MATERIALIZED (SELECT {schema}.import_1(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52
) AS imported),
kept AS (
    INSERT INTO {schema}.message_keys (instance_id, key, at)
    SELECT $1, k.key, {schema}.now_ms() FROM done, unnest($53::text[]) AS k (key) WHERE done.imported
    ON CONFLICT DO NOTHING
)
SELECT imported FROM done
