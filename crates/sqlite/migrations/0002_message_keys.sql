-- Keys of messages that were stored once. They are deleted with their instance.
CREATE TABLE message_keys (
    instance_id TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (instance_id, key)
) WITHOUT ROWID;
