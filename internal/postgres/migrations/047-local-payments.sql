-- What the payment provider of the local instance knows (docs/architecture/billing.md, "The local provider"): one document.
-- Everywhere else it stays empty.
CREATE TABLE local_payments (
  -- One row.
  is_only  boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- NULL: nothing was bought yet. Always read and written as a whole, so its text is kept as it came.
  document json
);
INSERT INTO local_payments DEFAULT VALUES;
