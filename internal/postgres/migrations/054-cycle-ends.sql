-- When a period that was paid for ends (docs/architecture/billing.md, "Credits of a period"): a change that comes later is of
-- another period. NULL: it was paid before this was kept.
ALTER TABLE subscription_cycles ADD COLUMN period_end timestamptz;
