-- The change feed of cached configuration (docs/architecture/protocol.md, "Cached configuration"): each change of a
-- buffer or an API key takes the next number of one counter, stands in config_changes under it, and is announced on
-- the channel penstock_config as {"entity", "id", "version"}.
--
-- The counter is a row, not a sequence: its lock is held until the commit, so numbers become visible in
-- their order and without gaps, and a reader that asks for everything above what it saw misses nothing.
-- The triggers are deferred to the commit, so the lock is the last one a transaction takes (no deadlock
-- between transactions that change several rows) and is held as shortly as can be.

CREATE TABLE config_version (
  sole    boolean PRIMARY KEY DEFAULT true CHECK (sole),
  version bigint NOT NULL
);
INSERT INTO config_version (version) VALUES (0);

-- The latest change of each row only: the table is as large as what it describes.
CREATE TABLE config_changes (
  entity  text NOT NULL,
  id      text NOT NULL,
  version bigint NOT NULL UNIQUE,
  PRIMARY KEY (entity, id)
);

CREATE FUNCTION publish_config_change(changed_entity text, changed_id text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  next bigint;
BEGIN
  UPDATE config_version SET version = version + 1 RETURNING version INTO next;
  INSERT INTO config_changes (entity, id, version) VALUES (changed_entity, changed_id, next)
    ON CONFLICT (entity, id) DO UPDATE SET version = excluded.version;
  PERFORM pg_notify('penstock_config',
    json_build_object('entity', changed_entity, 'id', changed_id, 'version', next)::text);
END $$;

-- Whoever writes the row (the admin API, the auto-pause) need not know of versions.
CREATE FUNCTION count_buffer_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.config, NEW.enabled, NEW.deleted_at) IS DISTINCT FROM (OLD.config, OLD.enabled, OLD.deleted_at) THEN
    NEW.version := OLD.version + 1;
    NEW.updated_at := clock_timestamp();
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER buffers_count_version BEFORE UPDATE ON buffers
  FOR EACH ROW EXECUTE FUNCTION count_buffer_version();

CREATE FUNCTION publish_buffer_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM publish_config_change('buffer', NEW.uid::text);
  RETURN NULL;
END $$;

-- Only updates: nobody caches that a row is missing, so there is nothing to tell of a new one.
CREATE CONSTRAINT TRIGGER buffers_publish AFTER UPDATE ON buffers
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (OLD.version IS DISTINCT FROM NEW.version)
  EXECUTE FUNCTION publish_buffer_change();

CREATE FUNCTION publish_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM publish_config_change('api_key', NEW.key_id);
  RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER api_keys_publish AFTER UPDATE ON api_keys
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN ((OLD.revoked_at, OLD.role, OLD.project_ids) IS DISTINCT FROM (NEW.revoked_at, NEW.role, NEW.project_ids))
  EXECUTE FUNCTION publish_key_change();
