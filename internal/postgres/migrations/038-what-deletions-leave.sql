-- What a deletion leaves behind (docs/architecture/protocol.md, "Cached configuration" and "Admin requests").

-- The highest version whose entry was cut from config_changes. A reader that had not come so far may have missed an
-- entry that nobody can tell it any more.
ALTER TABLE config_version ADD COLUMN cut bigint NOT NULL DEFAULT 0;

-- Whoever cuts need not know of readers.
CREATE FUNCTION mark_config_cut() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE config_version SET cut = gone.version
    FROM (SELECT max(version) AS version FROM cut_changes) AS gone
    WHERE gone.version > cut;
  RETURN NULL;
END $$;
CREATE TRIGGER config_changes_mark_cut AFTER DELETE ON config_changes
  REFERENCING OLD TABLE AS cut_changes
  FOR EACH STATEMENT EXECUTE FUNCTION mark_config_cut();

-- Ids that projects and buffers have or once had, each with its customer, for ever. No foreign keys: a row outlives
-- all that it names.
CREATE TABLE taken_ids (
  kind        text NOT NULL CHECK (kind IN ('project', 'buffer')),
  id          text NOT NULL,
  customer_id text NOT NULL,
  PRIMARY KEY (kind, id)
);

-- Whether the id is the customer's now. Of two customers that ask at once the second one waits for the first one's end.
-- One statement by the unique key: its plan stays right when the table grows from nothing.
CREATE FUNCTION take_id(wanted_kind text, wanted_id text, taker text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO taken_ids AS t (kind, id, customer_id) VALUES (wanted_kind, wanted_id, taker)
    ON CONFLICT (kind, id) DO UPDATE SET customer_id = excluded.customer_id
    WHERE t.customer_id = excluded.customer_id;
  RETURN FOUND;
END $$;

-- The id of another customer is answered as any id that exists: no row is inserted. So nodes of an earlier version
-- keep to it, too.
CREATE FUNCTION take_project_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RETURN CASE WHEN take_id('project', NEW.project_id, NEW.customer_id) THEN NEW END;
END $$;
CREATE TRIGGER projects_take_id BEFORE INSERT ON projects
  FOR EACH ROW EXECUTE FUNCTION take_project_id();

CREATE FUNCTION take_buffer_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RETURN CASE WHEN take_id('buffer', NEW.buffer_id, NEW.customer_id) THEN NEW END;
END $$;
CREATE TRIGGER buffers_take_id BEFORE INSERT ON buffers
  FOR EACH ROW EXECUTE FUNCTION take_buffer_id();

-- What exists now, behind the locks of the triggers. Of several customers that had an id: who has it now, else who
-- deleted it last, else any whose figures are left.
INSERT INTO taken_ids (kind, id, customer_id)
  SELECT 'project', project_id, customer_id FROM projects;
INSERT INTO taken_ids (kind, id, customer_id)
  SELECT DISTINCT ON (buffer_id) 'buffer', buffer_id, customer_id FROM buffers
  ORDER BY buffer_id, deleted_at DESC NULLS FIRST;
INSERT INTO taken_ids (kind, id, customer_id)
  SELECT 'project', project_id, customer_id FROM buffer_owners
  UNION ALL SELECT 'buffer', buffer_id, customer_id FROM buffer_owners
  ON CONFLICT (kind, id) DO NOTHING;
