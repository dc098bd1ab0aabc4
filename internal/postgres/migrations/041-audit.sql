-- Who did what to an account (docs/operations/audit.md, docs/decisions/0039-what-the-audit-keeps.md).
CREATE TABLE audit_records (
  -- No foreign key: what was seen is kept, whatever became of the row of its customer.
  customer_id text NOT NULL,
  -- Unix epoch milliseconds, by the clock of the process that saw it.
  created_at  bigint NOT NULL,
  -- Made by that process, so a batch whose answer was lost is written once however often it is sent.
  audit_id    uuid NOT NULL,
  event       text NOT NULL CHECK (event IN ('change', 'authentication_failed', 'left_out')),
  actor       jsonb NOT NULL,
  -- NULL: no request.
  method      text,
  route       text,
  target      jsonb NOT NULL,
  origin      jsonb NOT NULL,
  -- What was answered. NULL: nobody asked.
  status      integer,
  count       integer NOT NULL CHECK (count > 0),
  -- The order of the list, newest first.
  PRIMARY KEY (customer_id, created_at, audit_id)
);
-- What is too old, of all customers.
CREATE INDEX audit_records_by_age ON audit_records (created_at);
