-- By which keys the secrets of a row are sealed (docs/decisions/0041-keys-of-secrets.md), so that rows whose key is missing
-- are counted, and those of an old key found, without reading the others.

-- The key ids of the secrets in the configuration of a buffer, in their order, separated by commas; `?` stands for a text
-- that is not sealed. NULL: it has no secret.
CREATE FUNCTION secret_keys(config jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT string_agg(DISTINCT id COLLATE "C", ',' ORDER BY id COLLATE "C") FROM (
    SELECT CASE WHEN sealed LIKE 'enc1:%:%' THEN split_part(sealed, ':', 2) ELSE '?' END AS id FROM (
      SELECT config #>> '{delivery,signing,secret}' AS sealed
      UNION ALL SELECT config #>> '{sourceVerification,signingSecret}'
      UNION ALL SELECT value FROM jsonb_each_text(
        CASE jsonb_typeof(config #> '{delivery,headers}') WHEN 'object' THEN config #> '{delivery,headers}' ELSE '{}' END)
    ) AS secrets WHERE sealed IS NOT NULL
  ) AS ids
$$;

CREATE INDEX buffers_secret_keys ON buffers ((secret_keys(config) COLLATE "C"), uid)
  WHERE secret_keys(config) IS NOT NULL;

-- As in migration 043. A change of the key is one of the row, which nodes read again, but none of what the customer
-- configured, so `updated_at` stays.
CREATE OR REPLACE FUNCTION count_buffer_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.config, NEW.enabled, NEW.deleted_at) IS DISTINCT FROM (OLD.config, OLD.enabled, OLD.deleted_at) THEN
    NEW.version := OLD.version + 1;
    IF current_setting('penstock.rekeying', true) IS DISTINCT FROM 'on' THEN
      NEW.updated_at := clock_timestamp();
    END IF;
  ELSIF NEW.suspended <> OLD.suspended THEN
    NEW.version := OLD.version + 1;
  END IF;
  RETURN NEW;
END $$;
