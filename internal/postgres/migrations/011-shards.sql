-- What owners of shards write (docs/architecture/protocol.md, "Fencing in Postgres"): every such transaction holds
-- the shard's row of `shards` FOR SHARE, so that an epoch raised meanwhile waits for it, or it fails.

CREATE TABLE shards (
  shard int PRIMARY KEY,
  epoch bigint NOT NULL
);

-- Delivery counters reach to this sequence of the shard's journal.
CREATE TABLE projections (
  shard    int PRIMARY KEY,
  position bigint NOT NULL
);

-- Times are Unix epoch milliseconds. Text that a sender chose is json, not text or jsonb: it may hold U+0000.
CREATE TABLE dlq_items (
  dlq_id                text PRIMARY KEY,
  customer_id           text NOT NULL,
  project_id            text NOT NULL,
  buffer_id             text NOT NULL,
  buffer_uid            uuid NOT NULL,
  group_id              text NOT NULL,
  version               bigint NOT NULL,
  group_key             json NOT NULL,
  message_ids           json NOT NULL,
  first_payload_preview json NOT NULL,
  reason                text NOT NULL CHECK (reason IN ('max_retries_exceeded', 'non_retryable_error')),
  last_error            text NOT NULL,
  last_status_code      int NOT NULL,
  attempt               int NOT NULL,
  item_count            int NOT NULL,
  segment               int NOT NULL,
  first_item_at         bigint NOT NULL,
  last_activity_at      bigint NOT NULL,
  payload_bytes         bigint NOT NULL,
  -- The exact body that failed; NULL: not stored, so it cannot be retried.
  body                  bytea,
  body_sha256           bytea NOT NULL CHECK (octet_length(body_sha256) = 32),
  retry_count           int NOT NULL DEFAULT 0,
  last_retry_at         bigint,
  created_at            bigint NOT NULL,
  -- The journal says `dead`: nobody will ask for the name again, and a deletion needs no tombstone.
  recorded              boolean NOT NULL DEFAULT false,
  UNIQUE (group_id, version)
);
CREATE INDEX dlq_items_of_customer ON dlq_items (customer_id, created_at DESC, dlq_id DESC);
CREATE INDEX dlq_items_of_buffer ON dlq_items (customer_id, buffer_id, created_at DESC, dlq_id DESC);

-- Names of rows that were removed before the journal said `dead`.
CREATE TABLE dlq_tombstones (
  group_id text NOT NULL,
  version  bigint NOT NULL,
  PRIMARY KEY (group_id, version)
);

-- Whoever removes a row (its user, a successful retry) need not know of tombstones.
CREATE FUNCTION leave_tombstone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO dlq_tombstones (group_id, version) VALUES (OLD.group_id, OLD.version) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER dlq_items_leave_tombstone AFTER DELETE ON dlq_items
  FOR EACH ROW WHEN (NOT OLD.recorded) EXECUTE FUNCTION leave_tombstone();

-- Batches of the buffer that came to the dead letter queue, and how many of them the projection has seen:
-- the difference died after whatever the projection sees delivered now.
ALTER TABLE buffers
  ADD COLUMN dead_buried    bigint NOT NULL DEFAULT 0,
  ADD COLUMN dead_projected bigint NOT NULL DEFAULT 0;

-- One row a buffer and UTC day. Histograms count batches by upper bound, bounds as internal/domain/histogram.ts.
CREATE TABLE delivery_days (
  buffer_uid        uuid NOT NULL,
  day               date NOT NULL,
  delivered         bigint NOT NULL,
  dead              bigint NOT NULL,
  retries           bigint NOT NULL,
  items_delivered   bigint NOT NULL,
  time_to_flush     bigint[] NOT NULL,
  delivery_duration bigint[] NOT NULL,
  PRIMARY KEY (buffer_uid, day)
) WITH (fillfactor = 50);

CREATE FUNCTION add_counts(a bigint[], b bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY i)
  FROM unnest(a, b) WITH ORDINALITY AS t (x, y, i)
$$;
