-- Bodies of dead letters that are too large for one short statement (docs/architecture/protocol.md, "Dead letters").
-- Their parts are stored before the owner's fenced transaction, which then only refers to them.
CREATE TABLE dlq_bodies (
  body_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id   text NOT NULL,
  version    bigint NOT NULL,
  sha256     bytea NOT NULL CHECK (octet_length(sha256) = 32),
  -- All parts are there and have the hash. None comes or goes any more.
  complete   boolean NOT NULL DEFAULT false,
  -- When the last part came. What no dead letter refers to goes an hour later.
  touched_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (group_id, version, sha256)
);

-- `message_ids`: the JSON text of the column of that name, of which ten thousand may be as large as a body.
CREATE TABLE dlq_body_parts (
  body_id bigint NOT NULL REFERENCES dlq_bodies ON DELETE CASCADE,
  content text NOT NULL CHECK (content IN ('body', 'message_ids')),
  part    int NOT NULL,
  data    bytea NOT NULL,
  PRIMARY KEY (body_id, content, part)
);

-- Either the body itself, or where its parts stand.
ALTER TABLE dlq_items
  ADD COLUMN body_id bigint UNIQUE REFERENCES dlq_bodies,
  ADD CONSTRAINT dlq_items_one_body CHECK (body IS NULL OR body_id IS NULL);

-- Whoever removes a row need not know where its body stands.
CREATE FUNCTION remove_dead_letter_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM dlq_bodies WHERE body_id = OLD.body_id;
  RETURN NULL;
END $$;
CREATE TRIGGER dlq_items_remove_body AFTER DELETE ON dlq_items
  FOR EACH ROW WHEN (OLD.body_id IS NOT NULL) EXECUTE FUNCTION remove_dead_letter_body();
