-- A buffer may have a second secret to verify its senders by: `sourceVerification.previousSecret`. No row has one yet, so
-- the index over this function stays as it is.
CREATE OR REPLACE FUNCTION secret_keys(config jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT string_agg(DISTINCT id COLLATE "C", ',' ORDER BY id COLLATE "C") FROM (
    SELECT CASE WHEN sealed LIKE 'enc1:%:%' THEN split_part(sealed, ':', 2) ELSE '?' END AS id FROM (
      SELECT config #>> '{delivery,signing,secret}' AS sealed
      UNION ALL SELECT config #>> '{sourceVerification,signingSecret}'
      UNION ALL SELECT config #>> '{sourceVerification,previousSecret}'
      UNION ALL SELECT value FROM jsonb_each_text(
        CASE jsonb_typeof(config #> '{delivery,headers}') WHEN 'object' THEN config #> '{delivery,headers}' ELSE '{}' END)
    ) AS secrets WHERE sealed IS NOT NULL
  ) AS ids
$$;
