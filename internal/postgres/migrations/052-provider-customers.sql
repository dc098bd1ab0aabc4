-- An account may change its customer of a provider, and a database keeps the mode of its provider
-- (docs/architecture/billing.md, "A payment provider").

-- Somebody deleted the customer at the provider, and another one took its place. What it paid for stays the account's.
-- A table of its own: nodes of the version before keep customers by the primary key of provider_customers.
CREATE TABLE former_provider_customers (
  provider             text NOT NULL,
  provider_customer_id text NOT NULL,
  customer_id          text NOT NULL REFERENCES customers (customer_id),
  replaced_at          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider, provider_customer_id)
);

-- Money of the test mode is no money: credits of both modes must not meet in one database.
CREATE TABLE provider_modes (
  provider text PRIMARY KEY,
  mode     text NOT NULL CHECK (mode IN ('test', 'live'))
);
