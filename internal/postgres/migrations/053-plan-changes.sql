-- Changes of a plan in the middle of a period whose difference was paid (docs/architecture/billing.md, "Credits of a
-- period"). Each covers the credits of a whole period between those of both plans.
CREATE TABLE plan_changes (
  invoice_id      text NOT NULL REFERENCES invoices (invoice_id),
  changed_at      timestamptz NOT NULL,
  subscription_id text NOT NULL REFERENCES subscriptions (subscription_id),
  period_start    timestamptz NOT NULL,
  from_credits    bigint NOT NULL,
  to_credits      bigint NOT NULL CHECK (from_credits < to_credits),
  PRIMARY KEY (invoice_id, changed_at)
);
CREATE INDEX plan_changes_by_period ON plan_changes (subscription_id, period_start);
