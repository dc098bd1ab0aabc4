-- Accounts of the identity provider, each with the customer that its first ID token created
-- (docs/architecture/protocol.md, "Accounts").
CREATE TABLE identities (
  -- Claims `iss` and `sub`: together they name one account, for ever.
  issuer      text NOT NULL,
  subject     text NOT NULL,
  -- Checked at the commit, for the row is written before its customer: whoever writes it first creates one.
  customer_id text NOT NULL REFERENCES customers (customer_id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  created_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_of_customer ON identities (customer_id);

CREATE FUNCTION publish_identity_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM publish_config_change('identity', OLD.customer_id);
  RETURN NULL;
END $$;

-- Nodes remember whose customer an account is: they forget it when the row goes, or names another one.
CREATE CONSTRAINT TRIGGER identities_publish_deletion AFTER DELETE ON identities
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION publish_identity_change();
CREATE CONSTRAINT TRIGGER identities_publish_change AFTER UPDATE ON identities
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN ((OLD.issuer, OLD.subject, OLD.customer_id) IS DISTINCT FROM (NEW.issuer, NEW.subject, NEW.customer_id))
  EXECUTE FUNCTION publish_identity_change();
