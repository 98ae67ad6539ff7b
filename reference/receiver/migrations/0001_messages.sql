-- Authentic deliveries, one row a message. The same statements run on SQLite
-- and on PostgreSQL: the types are PostgreSQL's, which SQLite takes as they are.
-- Times are microseconds since 1970, in UTC.

CREATE TABLE messages (
    id          TEXT    NOT NULL PRIMARY KEY, -- the provider's id: a copy meets this key
    type        TEXT    NOT NULL,             -- from a header, or empty
    body        BYTEA   NOT NULL,             -- the bytes that were signed
    key_label   TEXT    NOT NULL,
    -- Not IN (…), for which SQLite builds a table at every insert.
    status      TEXT    NOT NULL CHECK (status = 'received' OR status = 'processed' OR status = 'failed'),
    received_at BIGINT  NOT NULL,
    due_at      BIGINT  NOT NULL,             -- not to be processed before
    finished_at BIGINT,
    attempts    INTEGER NOT NULL DEFAULT 0,   -- at processing it
    error       TEXT    NOT NULL DEFAULT ''   -- of the last attempt
);

-- Partial indexes: each holds only the rows of one status, so the queue costs
-- what waits in it, however many ids are remembered beside.
CREATE INDEX messages_waiting ON messages (due_at, id, received_at) WHERE status = 'received';
CREATE INDEX messages_failed ON messages (id) WHERE status = 'failed';
CREATE INDEX messages_done ON messages (received_at) WHERE status = 'processed';
