-- The claim and the last counted commit of a shard by their names (docs/architecture/protocol.md, "Fencing in Postgres"): after
-- a loss the journal may have another commit at the same sequence. NULL: not known, only the sequence is.
ALTER TABLE shards ADD COLUMN identity text;
ALTER TABLE projections ADD COLUMN identity text;
