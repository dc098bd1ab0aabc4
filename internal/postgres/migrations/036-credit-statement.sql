-- The order in which credit transactions are listed (docs/reference/api.md, "Credits"): newest first by
-- minute, and within a minute consumption as the newest, because its one row sums up the whole minute. So a
-- balance after each row, counted back from the present one, is true and never negative: a grant in the middle
-- of the minute comes before what the minute spent.
--
-- In place of the index by time alone: a new row is entered in as many indexes as before, and neither
-- `amount` nor `balance_after`, which each charge changes, stands in one.
CREATE INDEX credit_statement ON credit_transactions (
  customer_id,
  date_bin('1 minute', created_at, '2000-01-01T00:00:00Z'::timestamptz) DESC,
  (CASE type WHEN 'consumption' THEN 1 ELSE 0 END) DESC,
  created_at DESC,
  transaction_id DESC
);
DROP INDEX credit_transactions_of_customer;
