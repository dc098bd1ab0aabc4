-- Cycles whose credits were granted: each period of a subscription once, in whatever order they are told.
CREATE TABLE subscription_cycles (
  subscription_id text NOT NULL REFERENCES subscriptions (subscription_id),
  period_start    timestamptz NOT NULL,
  PRIMARY KEY (subscription_id, period_start)
);
