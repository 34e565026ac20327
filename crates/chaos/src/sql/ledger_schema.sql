-- Every run of a body, and its effect. An effect has a key, so that a repeated run does not add a second effect.
CREATE TABLE IF NOT EXISTS attempts (
    key    TEXT NOT NULL,
    worker TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS effects (
    key    TEXT NOT NULL PRIMARY KEY,
    job    TEXT NOT NULL,
    label  TEXT NOT NULL,
    number INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS effects_by_job ON effects (job, label);
