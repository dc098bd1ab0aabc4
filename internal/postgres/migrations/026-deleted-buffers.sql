-- Rows of deleted buffers stay until no shard needs them (docs/architecture/protocol.md, "Deleted buffers").
CREATE INDEX buffers_deleted ON buffers (deleted_at) WHERE deleted_at IS NOT NULL;

-- What owners say of deleted buffers, one row a shard. Nothing of a buffer that was deleted before
-- `deleted_before` is live on the shard or will ever be, but for those in `held`.
CREATE TABLE shard_reports (
  shard          int PRIMARY KEY,
  -- Of the owner that reported.
  epoch          bigint NOT NULL,
  -- It had read its inbox up to this sequence, which was the last one at some time after `deleted_before`.
  position       bigint NOT NULL,
  deleted_before timestamptz NOT NULL,
  held           uuid[] NOT NULL
);
