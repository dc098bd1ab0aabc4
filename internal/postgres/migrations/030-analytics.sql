-- What analytics read (docs/reference/analytics.md). A day is open while its counters are written: it stands
-- in ingest_days and delivery_days, one row a buffer. Some days later it is closed: its rows move, summed at
-- three levels, into closed_days. A number is the sum of both places, always, so it never matters whether
-- and when a day was closed, and what comes late for a closed day simply stands in an open row again.

-- Whose buffer it is, for ever: the numbers of a buffer outlive its row. Customer, project and id of one uid
-- never change.
CREATE TABLE buffer_owners (
  buffer_uid  uuid PRIMARY KEY,
  customer_id text NOT NULL,
  project_id  text NOT NULL,
  buffer_id   text NOT NULL
);
INSERT INTO buffer_owners (buffer_uid, customer_id, project_id, buffer_id)
  SELECT uid, customer_id, project_id, buffer_id FROM buffers;
CREATE INDEX buffer_owners_of_customer ON buffer_owners (customer_id, buffer_id);

CREATE FUNCTION remember_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO buffer_owners (buffer_uid, customer_id, project_id, buffer_id)
    VALUES (NEW.uid, NEW.customer_id, NEW.project_id, NEW.buffer_id);
  RETURN NULL;
END $$;
CREATE TRIGGER buffers_remember_owner AFTER INSERT ON buffers
  FOR EACH ROW EXECUTE FUNCTION remember_owner();

-- NULL: a buffer that nobody knows any more; its numbers are nobody's. Neither column of these indexes ever
-- changes, so the counters beside them are still updated in place.
ALTER TABLE delivery_days
  ADD COLUMN customer_id text,
  ADD COLUMN items_dead  bigint NOT NULL DEFAULT 0;
UPDATE delivery_days d SET customer_id = o.customer_id FROM buffer_owners o WHERE o.buffer_uid = d.buffer_uid;
CREATE INDEX delivery_days_of_customer ON delivery_days (customer_id, day);
CREATE INDEX ingest_days_of_customer ON ingest_days (customer_id, day);

-- Closed days at three levels: a customer ('' and ''), a project ('' as buffer_id), a buffer. No identifier
-- is empty. Ids, not uids: what a caller filters by.
CREATE TABLE closed_days (
  customer_id       text NOT NULL,
  buffer_id         text NOT NULL,
  project_id        text NOT NULL,
  day               date NOT NULL,
  ingest_count      bigint NOT NULL,
  delivered         bigint NOT NULL,
  dead              bigint NOT NULL,
  retries           bigint NOT NULL,
  items_delivered   bigint NOT NULL,
  items_dead        bigint NOT NULL,
  time_to_flush     bigint[] NOT NULL,
  delivery_duration bigint[] NOT NULL,
  PRIMARY KEY (customer_id, buffer_id, project_id, day)
);
