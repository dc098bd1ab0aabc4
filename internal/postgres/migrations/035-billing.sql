-- Plans, credit packs, subscriptions, invoices, and what the payment provider has told (docs/reference/api.md,
-- "Credits", "Subscriptions" and "Invoices"). Money is in cents, credits are integers.
--
-- Lock order of the provider's events: provider_events, customers, then subscriptions and invoices.

-- The catalogue as the last start of a node left it. A row is never deleted: subscriptions and paid packs
-- name it; what the catalogue no longer has is not active.
CREATE TABLE plans (
  plan_id           text PRIMARY KEY,
  name              text NOT NULL,
  price_in_cents    bigint NOT NULL CHECK (price_in_cents > 0),
  currency          text NOT NULL,
  -- By currency, at least one: {"BRL": 4900, "USD": 990}.
  prices            jsonb NOT NULL,
  credits_per_cycle bigint NOT NULL CHECK (credits_per_cycle > 0),
  is_active         boolean NOT NULL,
  -- Of the payment provider; NULL: there is nothing to buy yet.
  offer_id          text
);

CREATE TABLE credit_packs (
  pack_id   text PRIMARY KEY,
  credits   bigint NOT NULL CHECK (credits > 0),
  is_active boolean NOT NULL,
  offer_id  text
);

-- Identifiers of subscriptions and invoices are the provider's.
CREATE TABLE subscriptions (
  subscription_id      text PRIMARY KEY,
  customer_id          text NOT NULL REFERENCES customers (customer_id),
  plan_id              text NOT NULL REFERENCES plans (plan_id),
  status               text NOT NULL
    CHECK (status IN ('PENDING', 'ACTIVE', 'CANCELLING', 'CANCELLED', 'PAST_DUE')),
  current_period_start timestamptz NOT NULL,
  current_period_end   timestamptz NOT NULL,
  auto_renew           boolean NOT NULL DEFAULT true,
  cancel_reason        text,
  -- The provider's time of the newest event that was applied; what is older changes no state.
  told_at              timestamptz NOT NULL DEFAULT 'epoch',
  created_at           timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX subscriptions_of_customer ON subscriptions (customer_id, created_at DESC);

CREATE TABLE invoices (
  invoice_id      text PRIMARY KEY,
  customer_id     text NOT NULL REFERENCES customers (customer_id),
  subscription_id text NOT NULL REFERENCES subscriptions (subscription_id),
  status          text NOT NULL CHECK (status IN ('open', 'paid', 'void', 'refunded')),
  amount          bigint NOT NULL,
  paid_at         timestamptz,
  told_at         timestamptz NOT NULL DEFAULT 'epoch',
  created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX invoices_of_customer ON invoices (customer_id, created_at DESC, invoice_id DESC);

-- An event is applied in the transaction of its mark: one that is told again finds the mark.
CREATE TABLE provider_events (
  event_id    text PRIMARY KEY,
  kind        text NOT NULL,
  told_at     timestamptz NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now()
);
