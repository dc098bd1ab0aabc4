-- Revoked API keys do not stay for ever (docs/architecture/protocol.md, "Cached configuration").

-- Keys that `PENSTOCK_OWNER_KEYS` named: a start would make them anew, so their rows stay when they are revoked. Each
-- start marks those that it names, also those of earlier versions. No column of api_keys: nodes of an earlier version
-- have statements that answer all its columns, and each of their connections would fail once.
CREATE TABLE configured_keys (
  key_id text PRIMARY KEY REFERENCES api_keys (key_id) ON DELETE CASCADE
);

-- A revoked key goes with its entry in the feed: who had not read it sees that something was cut. One that was active
-- when somebody deleted its row is told of. Deferred for the same reason as the other triggers of the feed.
CREATE FUNCTION publish_key_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.revoked_at IS NULL THEN
    PERFORM publish_config_change('api_key', OLD.key_id);
  ELSE
    DELETE FROM config_changes WHERE entity = 'api_key' AND id = OLD.key_id;
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER api_keys_publish_deletion AFTER DELETE ON api_keys
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION publish_key_deletion();

-- Active keys first, then those that were revoked last: lists and counts read no more than they answer.
CREATE INDEX api_keys_by_revocation ON api_keys (customer_id, revoked_at DESC, key_id);
-- Last, for it keeps readers out until the commit.
DROP INDEX api_keys_of_customer;
