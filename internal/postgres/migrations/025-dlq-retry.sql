-- Manual retries of dead letters: the lock is a lease, for a node may die in the middle of an attempt. While
-- `retry_until` is ahead nobody else begins one; `retry_id` names the attempt that holds it.
ALTER TABLE dlq_items
  ADD COLUMN retry_id    uuid,
  ADD COLUMN retry_until timestamptz,
  ADD CONSTRAINT dlq_items_retry CHECK ((retry_id IS NULL) = (retry_until IS NULL));

-- The list of a credential that reaches some projects only, one project at a time.
CREATE INDEX dlq_items_of_project ON dlq_items (customer_id, project_id, created_at DESC, dlq_id DESC);
