-- Suspended customers (docs/decisions/0040-suspended-customers.md).

-- A table of its own: the rows of customers belong to the credits, which write them all the time.
CREATE TABLE suspensions (
  customer_id  text PRIMARY KEY REFERENCES customers (customer_id) ON DELETE CASCADE,
  suspended_at timestamptz NOT NULL,
  -- NULL: suspended now. The row stays after a resume, for the retention of dead letters counts from there.
  resumed_at   timestamptz
);

CREATE FUNCTION is_suspended(wanted text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM suspensions WHERE customer_id = wanted AND resumed_at IS NULL)
$$;

-- Keys and accounts are told through their customer: one entry, however many there are.
CREATE FUNCTION publish_suspension() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM publish_config_change('customer', NEW.customer_id);
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER suspensions_publish AFTER INSERT OR UPDATE ON suspensions
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION publish_suspension();

-- Buffers carry the state themselves: so their version counts it, the feed tells it, and ingest asks nobody else.
ALTER TABLE buffers ADD COLUMN suspended boolean NOT NULL DEFAULT false;

-- Who takes it shared keeps the customer as it is until its commit.
CREATE FUNCTION hold_suspension(wanted text) RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock_shared(hashtextextended('suspension ' || wanted, 0))
$$;

-- Also a buffer that a node of an earlier version creates.
CREATE FUNCTION take_suspension() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM hold_suspension(NEW.customer_id);
  NEW.suspended := is_suspended(NEW.customer_id);
  RETURN NEW;
END $$;
CREATE TRIGGER buffers_take_suspension BEFORE INSERT ON buffers
  FOR EACH ROW EXECUTE FUNCTION take_suspension();

-- As in migration 002. A suspension is no change of what the customer configured, so `updated_at` stays.
CREATE OR REPLACE FUNCTION count_buffer_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.config, NEW.enabled, NEW.deleted_at) IS DISTINCT FROM (OLD.config, OLD.enabled, OLD.deleted_at) THEN
    NEW.version := OLD.version + 1;
    NEW.updated_at := clock_timestamp();
  ELSIF NEW.suspended <> OLD.suspended THEN
    NEW.version := OLD.version + 1;
  END IF;
  RETURN NEW;
END $$;
