-- Credits in advance (docs/decisions/0017-credits-in-advance.md): a node under load takes some of a customer's
-- balance ahead, pays single charges from it without asking, and reports what it spent with its next statement.
--
-- customers.credits stays the balance that people see; what nodes hold in advance is not free for others.

ALTER TABLE customers ADD COLUMN advanced bigint NOT NULL DEFAULT 0 CHECK (advanced >= 0);
-- `advance`: held by this node. `taken`, `elsewhere`: the last statement's answer, for its repetition.
ALTER TABLE settlements
  ADD COLUMN advance   bigint NOT NULL DEFAULT 0 CHECK (advance >= 0),
  ADD COLUMN taken     bigint NOT NULL DEFAULT 0,
  ADD COLUMN elsewhere bigint NOT NULL DEFAULT 0;

-- As above, with what nodes hold in advance.
CREATE FUNCTION move_credits(p_customer text, p_amount bigint, p_advanced bigint) RETURNS bigint LANGUAGE sql AS $$
  UPDATE customers SET
    credits = credits + p_amount,
    advanced = advanced + p_advanced,
    credits_used_this_month = greatest(0, -p_amount + CASE
      WHEN last_reset_at < date_trunc('month', now(), 'UTC') THEN 0 ELSE credits_used_this_month END),
    last_reset_at = greatest(last_reset_at, date_trunc('month', now(), 'UTC'))
  WHERE customer_id = p_customer
  RETURNING credits
$$;

DROP FUNCTION charge_credits(uuid, text, bigint, uuid[], int[], int[], int[], bigint[], int[], bigint);

-- Statement number p_number of a node for a customer. What was spent in advance is booked and what comes
-- back is credited; then the charges follow in their order as far as the free balance reaches: the first one
-- that cannot be paid ends it, `granted` says how many were. Last, up to p_take is taken in advance, never
-- more than a 64th of what is free: where the balance is low, nothing is.
--   p_buffers          the buffers that the rest names by index, from 1
--   p_run_*            the charges in order; equal neighbours are one run of p_run_count
--   p_refund_*         by index of p_buffers: credits and items credited back
--   p_spent_*          by index of p_buffers: credits and items paid in advance since the last statement
--   p_settled          credits of charges that are stored for good
--   p_give_back        credits of the advance that are not needed any more
-- is_open: false when the node is closed: it must not go on. balance: free afterwards. elsewhere: what other
-- nodes hold in advance, and may give back.
CREATE FUNCTION charge_credits(
  p_boot uuid, p_customer text, p_number bigint, p_buffers uuid[],
  p_run_buffer int[], p_run_credits int[], p_run_count int[],
  p_refund_credits bigint[], p_refund_items int[],
  p_spent_credits bigint[], p_spent_items int[],
  p_settled bigint, p_give_back bigint, p_take bigint,
  OUT is_open boolean, OUT granted int, OUT balance bigint, OUT taken bigint, OUT elsewhere bigint
) LANGUAGE plpgsql AS $$
DECLARE
  applied  bigint;
  booked   bigint;
  charged  bigint := 0;
  refunded bigint := 0;
  reported bigint := 0;
  spent    bigint[] := p_refund_credits;
  items    bigint[] := p_refund_items;
  payable  int;
BEGIN
  is_open := true;
  SELECT s.number, s.granted, s.balance, s.taken, s.elsewhere INTO applied, granted, balance, taken, elsewhere
  FROM settlements s WHERE s.boot = p_boot AND s.customer_id = p_customer FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM ledger_nodes n WHERE n.boot = p_boot FOR SHARE;
    IF NOT FOUND THEN is_open := false; RETURN; END IF;
    INSERT INTO settlements (boot, customer_id) VALUES (p_boot, p_customer) ON CONFLICT DO NOTHING;
    SELECT s.number, s.granted, s.balance, s.taken, s.elsewhere
      INTO STRICT applied, granted, balance, taken, elsewhere
    FROM settlements s WHERE s.boot = p_boot AND s.customer_id = p_customer FOR UPDATE;
  END IF;
  IF applied >= p_number THEN RETURN; END IF;
  -- A statement is missing here that the node saw applied (a restored backup): it must not go on either.
  IF applied <> p_number - 1 THEN is_open := false; RETURN; END IF;

  SELECT c.credits, c.credits - c.advanced,
    c.advanced - (SELECT s.advance FROM settlements s WHERE s.boot = p_boot AND s.customer_id = p_customer)
  INTO booked, balance, elsewhere
  FROM customers c WHERE c.customer_id = p_customer FOR NO KEY UPDATE;
  booked := coalesce(booked, 0);
  elsewhere := coalesce(elsewhere, 0);
  balance := coalesce(balance, 0) + p_give_back;
  granted := 0;
  FOR b IN 1 .. cardinality(p_buffers) LOOP
    balance := balance + p_refund_credits[b];
    refunded := refunded + p_refund_credits[b];
    reported := reported + p_spent_credits[b];
    spent[b] := p_spent_credits[b] - p_refund_credits[b];
    items[b] := p_spent_items[b] - p_refund_items[b];
  END LOOP;
  FOR r IN 1 .. cardinality(p_run_buffer) LOOP
    payable := greatest(0, least(p_run_count[r], balance / p_run_credits[r]));
    granted := granted + payable;
    balance := balance - payable::bigint * p_run_credits[r];
    charged := charged + payable::bigint * p_run_credits[r];
    spent[p_run_buffer[r]] := spent[p_run_buffer[r]] + payable::bigint * p_run_credits[r];
    items[p_run_buffer[r]] := items[p_run_buffer[r]] + payable;
    EXIT WHEN payable < p_run_count[r];
  END LOOP;
  taken := greatest(0, least(p_take, balance / 64));
  balance := balance - taken;

  UPDATE settlements s SET number = p_number, granted = charge_credits.granted, balance = charge_credits.balance,
    taken = charge_credits.taken, elsewhere = charge_credits.elsewhere,
    advance = s.advance - reported - p_give_back + charge_credits.taken,
    unsettled = s.unsettled + reported + charged - p_settled - refunded
  WHERE s.boot = p_boot AND s.customer_id = p_customer;
  IF refunded <> reported + charged OR taken <> reported + p_give_back THEN
    PERFORM move_credits(p_customer, refunded - reported - charged, taken - reported - p_give_back);
  END IF;
  -- What comes back is booked first: no balance in between is negative.
  FOR b IN 1 .. cardinality(p_buffers) LOOP
    CONTINUE WHEN spent[b] >= 0;
    booked := booked - spent[b];
    PERFORM book_consumption(p_customer, p_buffers[b], spent[b], booked);
  END LOOP;
  FOR b IN 1 .. cardinality(p_buffers) LOOP
    PERFORM count_ingest(p_customer, p_buffers[b], items[b]);
    CONTINUE WHEN spent[b] <= 0;
    booked := booked - spent[b];
    PERFORM book_consumption(p_customer, p_buffers[b], spent[b], booked);
  END LOOP;
END $$;

-- Closes a node for good, refunds what it had not settled, exactly, and frees what it held in advance: what it
-- sends later is refused. Returns what was refunded to whom; nothing when the node was closed before.
CREATE OR REPLACE FUNCTION close_ledger_node(p_boot uuid) RETURNS TABLE (customer_id text, credits bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  owed  record;
  after bigint;
BEGIN
  DELETE FROM ledger_nodes WHERE boot = p_boot;
  IF NOT FOUND THEN RETURN; END IF;
  FOR owed IN
    SELECT s.customer_id AS id, s.unsettled AS amount, s.advance FROM settlements s
    WHERE s.boot = p_boot ORDER BY s.customer_id FOR UPDATE
  LOOP
    CONTINUE WHEN owed.amount = 0 AND owed.advance = 0;
    after := move_credits(owed.id, owed.amount, -owed.advance);
    CONTINUE WHEN owed.amount = 0;
    INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
    VALUES (owed.id, owed.amount, 'refund', 'Credits of interrupted requests', after);
    RETURN QUERY SELECT owed.id, owed.amount;
  END LOOP;
  DELETE FROM settlements WHERE boot = p_boot;
END $$;
