-- What the destination answered to the last attempt of a dead letter (docs/architecture/protocol.md, "Dead letters"): at
-- most 1,024 bytes. NULL: it answered nothing, or the row is older than this column.
ALTER TABLE dlq_items ADD COLUMN last_response text;
