-- An account may change its customer of a provider, and a database keeps the mode of its provider
-- (docs/architecture/billing.md, "A payment provider").

-- Somebody deleted the customer at the provider, and another one took its place. What it paid for stays the account's.
ALTER TABLE provider_customers ADD COLUMN replaced_at timestamptz;
ALTER TABLE provider_customers DROP CONSTRAINT provider_customers_pkey;
ALTER TABLE provider_customers DROP CONSTRAINT provider_customers_provider_provider_customer_id_key;
ALTER TABLE provider_customers ADD PRIMARY KEY (provider, provider_customer_id);
CREATE UNIQUE INDEX provider_customers_current ON provider_customers (provider, customer_id)
  WHERE replaced_at IS NULL;

-- Money of the test mode is no money: credits of both modes must not meet in one database.
CREATE TABLE provider_modes (
  provider text PRIMARY KEY,
  mode     text NOT NULL CHECK (mode IN ('test', 'live'))
);
