-- Customers, projects, buffers, API keys and credit transactions (docs/architecture/protocol.md, "Postgres").
-- Times are timestamptz; the adapters answer Unix epoch milliseconds (API keys: ISO 8601).

CREATE TABLE customers (
  customer_id             text PRIMARY KEY,
  name                    text NOT NULL,
  enabled                 boolean NOT NULL DEFAULT true,
  -- Credits are integers; the ledger never lets a balance fall below zero.
  credits                 bigint NOT NULL DEFAULT 0 CHECK (credits >= 0),
  credit_limit            bigint NOT NULL DEFAULT 0,
  credits_used_this_month bigint NOT NULL DEFAULT 0,
  last_reset_at           timestamptz NOT NULL DEFAULT now(),
  -- The customer whose owner created this one: it may read it. NULL: signed up, or made by the operator.
  created_by              text REFERENCES customers (customer_id),
  created_at              timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE projects (
  project_id  text PRIMARY KEY,
  customer_id text NOT NULL REFERENCES customers (customer_id),
  name        text NOT NULL,
  enabled     boolean NOT NULL DEFAULT true,
  created_at  timestamptz NOT NULL DEFAULT now(),
  updated_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX projects_of_customer ON projects (customer_id, created_at DESC);

CREATE TABLE buffers (
  -- The internal identity: a deleted and re-created buffer has another one and inherits nothing.
  uid                   uuid PRIMARY KEY,
  buffer_id             text NOT NULL,
  customer_id           text NOT NULL REFERENCES customers (customer_id),
  -- No foreign key: a soft-deleted buffer outlives its project. Creation locks the project row instead.
  project_id            text NOT NULL,
  -- The configuration without `enabled`; every secret in it is encrypted (see secrets.ts).
  config                jsonb NOT NULL,
  enabled               boolean NOT NULL DEFAULT true,
  consecutive_dlq_count integer NOT NULL DEFAULT 0 CHECK (consecutive_dlq_count >= 0),
  -- Grows with each change of config, enabled or deletion. A change of the counter alone is none: the
  -- shards never decide by it, and reads of the admin API take it from here.
  version               bigint NOT NULL DEFAULT 1,
  deleted_at            timestamptz,
  -- Whether it was enabled when it was deleted: what a disabled one holds is discarded.
  deleted_state         text CHECK (deleted_state IN ('enabled', 'disabled')),
  created_at            timestamptz NOT NULL DEFAULT now(),
  updated_at            timestamptz NOT NULL DEFAULT now(),
  CHECK ((deleted_at IS NULL) = (deleted_state IS NULL))
);
-- An id is taken by at most one buffer that is not deleted, in the whole installation.
CREATE UNIQUE INDEX buffers_live_id ON buffers (buffer_id) WHERE deleted_at IS NULL;
CREATE INDEX buffers_of_customer ON buffers (customer_id, created_at DESC) WHERE deleted_at IS NULL;
CREATE INDEX buffers_of_project ON buffers (project_id) WHERE deleted_at IS NULL;

CREATE TABLE api_keys (
  key_id       text PRIMARY KEY,
  customer_id  text NOT NULL REFERENCES customers (customer_id),
  name         text NOT NULL,
  -- SHA-256 of the secret: 192 random bits need no salt and no slow hash.
  hash         bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
  key_prefix   text NOT NULL,
  role         text NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
  -- NULL: all projects of the customer.
  project_ids  text[] CHECK (cardinality(project_ids) > 0),
  created_at   timestamptz NOT NULL DEFAULT now(),
  revoked_at   timestamptz,
  last_used_at timestamptz
);
CREATE INDEX api_keys_of_customer ON api_keys (customer_id, created_at DESC);

CREATE TABLE credit_transactions (
  transaction_id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
  customer_id    text NOT NULL REFERENCES customers (customer_id),
  -- Positive for grants, purchases and refunds, negative for consumption.
  amount         bigint NOT NULL,
  type           text NOT NULL CHECK (type IN ('grant', 'purchase', 'consumption', 'refund')),
  description    text NOT NULL,
  balance_after  bigint NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX credit_transactions_of_customer ON credit_transactions (customer_id, created_at DESC);
