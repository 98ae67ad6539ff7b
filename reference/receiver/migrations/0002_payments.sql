-- The example business: payments, and what was done for which event.

-- One row an event whose effect took place. The key makes an effect that is
-- tried again a conflict instead of a second payment.
CREATE TABLE effects (
    event_id   TEXT   NOT NULL PRIMARY KEY,
    kind       TEXT   NOT NULL,
    payment    TEXT   NOT NULL, -- empty for events that are not about one
    applied_at BIGINT NOT NULL
);

CREATE TABLE payments (
    id        TEXT   NOT NULL PRIMARY KEY,
    state     TEXT   NOT NULL CHECK (state = 'received' OR state = 'succeeded' OR state = 'refunded'),
    amount    BIGINT NOT NULL, -- in the currency's smallest unit
    currency  TEXT   NOT NULL,
    reference TEXT   NOT NULL, -- the merchant's own
    version   BIGINT NOT NULL, -- of the newest event, 0 where events have none
    event_at  BIGINT NOT NULL, -- time of the newest event
    events    BIGINT NOT NULL  -- effects that met this row: counts up, so that a second time shows
);
