-- The outbox. Times are nanoseconds since 1970, in UTC: retries are due by the
-- clock that they are judged by, to the last digit.

CREATE TABLE endpoints (
    id            TEXT    NOT NULL PRIMARY KEY,
    url           TEXT    NOT NULL,
    api_version   TEXT    NOT NULL,           -- that payloads are rendered in
    status        TEXT    NOT NULL CHECK (status = 'enabled' OR status = 'disabled' OR status = 'deleted'),
    reason        TEXT    NOT NULL DEFAULT '',
    created_at    BIGINT  NOT NULL,
    last_success  BIGINT,
    failing_since BIGINT,                     -- end of the first failure since the last success
    notify_at     BIGINT,                     -- when its owner is to be told next that it fails
    notified      INTEGER NOT NULL DEFAULT 0, -- how many of these have been told
    alerted       INTEGER NOT NULL DEFAULT 0, -- 1: told since the last success that it refuses credentials

    -- Its place in the queue of endpoints. next_at is when it may have another
    -- attempt, NULL while nothing waits, every slot is taken or it is not enabled.
    next_at       BIGINT,
    turn          BIGINT  NOT NULL DEFAULT 0, -- when it was last served, as a count
    served_at     BIGINT  NOT NULL DEFAULT 0,
    trusted       INTEGER NOT NULL DEFAULT 0, -- 1: its last attempt ended in time, so it gets all its slots
    silent        INTEGER NOT NULL DEFAULT 0  -- 1: its last attempt met the timeout
);

-- The queue of endpoints, those that keep others waiting apart from the rest.
CREATE INDEX endpoints_next ON endpoints (silent, next_at, turn) WHERE next_at IS NOT NULL;
CREATE INDEX endpoints_notify ON endpoints (notify_at) WHERE notify_at IS NOT NULL;

CREATE TABLE subscriptions (
    type        TEXT NOT NULL,                -- a whole name, or * for every type
    endpoint_id TEXT NOT NULL,
    PRIMARY KEY (type, endpoint_id)
);
CREATE INDEX subscriptions_endpoint ON subscriptions (endpoint_id);

-- The newest secret of an endpoint has no expiry; the one before has.
CREATE TABLE secrets (
    id          INTEGER NOT NULL PRIMARY KEY,
    endpoint_id TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL,
    expires_at  BIGINT
);
CREATE INDEX secrets_endpoint ON secrets (endpoint_id);

-- What happened. The record is what a payload was made from, as it stands now:
-- it may change, payloads do not. NULL where publishing was given finished bytes.
CREATE TABLE events (
    id          INTEGER NOT NULL PRIMARY KEY,
    type        TEXT    NOT NULL,
    happened_at BIGINT  NOT NULL,
    record      BLOB,
    created_at  BIGINT  NOT NULL
);

-- The bytes that are sent, made once, on publishing. Messages of one event share
-- them where they are equal.
CREATE TABLE payloads (
    id   INTEGER NOT NULL PRIMARY KEY,
    body BLOB    NOT NULL
);

CREATE TABLE messages (
    id          TEXT    NOT NULL PRIMARY KEY,
    event_id    INTEGER NOT NULL,
    payload_id  INTEGER NOT NULL,
    endpoint_id TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    status      TEXT    NOT NULL CHECK (status = 'pending' OR status = 'delivered' OR status = 'failed'),
    created_at  BIGINT  NOT NULL,
    finished_at BIGINT,
    attempts    INTEGER NOT NULL DEFAULT 0,   -- that the schedule made
    due_at      BIGINT,                       -- the schedule's next attempt
    manual_at   BIGINT,                       -- an attempt that somebody asked for

    -- queued_at is the earlier of both, NULL while a process works on it.
    queued_at   BIGINT,
    owner       TEXT,                         -- that process
    leased_at   BIGINT,
    lease_until BIGINT                        -- when another may take it, whatever became of the owner
);

-- Partial indexes: each holds only what waits, is under way, or needs a person,
-- however many messages are kept beside.
CREATE INDEX messages_queued ON messages (endpoint_id, queued_at, id) WHERE queued_at IS NOT NULL;
CREATE INDEX messages_leased ON messages (endpoint_id, owner, lease_until) WHERE owner IS NOT NULL;
CREATE INDEX messages_failed ON messages (endpoint_id, id) WHERE status = 'failed';
CREATE INDEX messages_event ON messages (event_id);
CREATE INDEX messages_endpoint ON messages (endpoint_id, id);

-- For what counts and what deletes: the oldest that is pending, the oldest that is done.
CREATE INDEX messages_status ON messages (status, finished_at, created_at);

-- The delivery log: a row an attempt, written in the transaction that sets the
-- message's next state.
CREATE TABLE attempts (
    id          INTEGER NOT NULL PRIMARY KEY,
    message_id  TEXT    NOT NULL,
    endpoint_id TEXT    NOT NULL,
    number      INTEGER NOT NULL,             -- 0: by hand, or interrupted
    manual      INTEGER NOT NULL,
    began_at    BIGINT  NOT NULL,
    duration    BIGINT  NOT NULL,             -- nanoseconds
    status      INTEGER NOT NULL,             -- 0: no answer came
    fault       TEXT    NOT NULL,
    error       TEXT    NOT NULL,
    body        BLOB                          -- the start of an error's body
);
CREATE INDEX attempts_message ON attempts (message_id);

CREATE TABLE notifications (
    id          INTEGER NOT NULL PRIMARY KEY,
    endpoint_id TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL
);
CREATE INDEX notifications_endpoint ON notifications (endpoint_id);

-- The processes that send from this file. Each holds a lock on a file of its own
-- as long as it lives, which is how the others know that it died.
CREATE TABLE processes (
    id         TEXT   NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL
);
