-- What is read at a payment provider (docs/architecture/billing.md, "Readings" and "Money back"). An event only names an
-- object; the object is read anew, and the reading that began last counts. So no event is remembered any more.
--
-- Lock order of a reading: customers, then subscriptions, invoices and credit_sales.

DROP TABLE provider_events;

-- When the reading began that was written last, or the provider's yes to a cancellation came.
ALTER TABLE subscriptions RENAME COLUMN told_at TO read_at;
-- The state that a cancellation of the customer was answered with. A reading may be faster than that answer: the request
-- that asked for it still succeeds, and a second one does not.
ALTER TABLE subscriptions ADD COLUMN answered_status text;
ALTER TABLE invoices RENAME COLUMN told_at TO read_at;

-- Credits of a whole period, of the best plan that the period was paid for.
ALTER TABLE subscription_cycles ADD COLUMN credits bigint;
UPDATE subscription_cycles SET credits = (
  SELECT credits_per_cycle FROM plans JOIN subscriptions USING (plan_id)
  WHERE subscriptions.subscription_id = subscription_cycles.subscription_id);
ALTER TABLE subscription_cycles ALTER COLUMN credits SET NOT NULL;

-- What one payment brought: an invoice of a plan's period, or the checkout of a pack.
CREATE TABLE credit_sales (
  sale_id          text PRIMARY KEY,
  customer_id      text NOT NULL REFERENCES customers (customer_id),
  credits          bigint NOT NULL CHECK (credits >= 0),
  -- Taken back, because so much of the money went back.
  returned_credits bigint NOT NULL DEFAULT 0 CHECK (returned_credits BETWEEN 0 AND credits),
  read_at          timestamptz NOT NULL DEFAULT 'epoch'
);

-- One customer of the provider an account.
CREATE TABLE provider_customers (
  provider             text NOT NULL,
  customer_id          text NOT NULL REFERENCES customers (customer_id),
  provider_customer_id text NOT NULL,
  PRIMARY KEY (provider, customer_id),
  UNIQUE (provider, provider_customer_id)
);

CREATE TABLE provider_sweeps (
  provider      text PRIMARY KEY,
  -- All that changed before was read. NULL: there was no sweep yet.
  swept_until   timestamptz,
  -- A node sweeps; when it dies, another one does after this.
  claimed_until timestamptz NOT NULL DEFAULT 'epoch'
);

-- Credits that were spent before their money went back. The next ones pay for them, so the balance is never negative.
ALTER TABLE customers ADD COLUMN credit_debt bigint NOT NULL DEFAULT 0 CHECK (credit_debt >= 0);

-- Moves credits of the balance into the debt. Its time is later than that of what came before in the same transaction,
-- so the list shows them in this order and no balance in between is negative.
CREATE FUNCTION pay_debt(p_customer text, p_credits bigint, p_description text) RETURNS void LANGUAGE sql AS $$
  WITH paid AS (
    UPDATE customers SET credits = credits - p_credits, credit_debt = credit_debt - p_credits
    WHERE customer_id = p_customer RETURNING credits
  )
  INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after, created_at)
  SELECT p_customer, -p_credits, 'refund', p_description, credits, clock_timestamp() FROM paid
$$;

-- As much of the debt as is free: what nodes hold in advance is spent, or comes back with one of their statements.
CREATE FUNCTION pay_free_debt(p_customer text, p_description text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  payable bigint;
BEGIN
  SELECT least(credit_debt, credits - advanced) INTO payable FROM customers WHERE customer_id = p_customer;
  IF payable > 0 THEN PERFORM pay_debt(p_customer, payable, p_description); END IF;
END $$;

-- Adds credits as one transaction, and pays what the customer owes. Answers the balance afterwards; NULL: no such customer.
CREATE FUNCTION add_credits(p_customer text, p_credits bigint, p_type text, p_description text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  balance bigint;
BEGIN
  UPDATE customers SET credits = credits + p_credits WHERE customer_id = p_customer RETURNING credits INTO balance;
  IF NOT FOUND THEN RETURN NULL; END IF;
  INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
  VALUES (p_customer, p_credits, p_type, p_description, balance);
  PERFORM pay_free_debt(p_customer, 'Credits owed for money that went back');
  SELECT credits INTO balance FROM customers WHERE customer_id = p_customer;
  RETURN balance;
END $$;

-- Takes credits: what is free at once, the rest as a debt.
CREATE FUNCTION take_credits(p_customer text, p_credits bigint, p_description text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE customers SET credit_debt = credit_debt + p_credits WHERE customer_id = p_customer;
  PERFORM pay_free_debt(p_customer, p_description);
END $$;

-- As in 012, and a debt is paid from what is free before anything is charged.
CREATE OR REPLACE FUNCTION charge_credits(
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
  debt     bigint;
  paid     bigint := 0;
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

  SELECT c.credits, c.credits - c.advanced, c.credit_debt,
    c.advanced - (SELECT s.advance FROM settlements s WHERE s.boot = p_boot AND s.customer_id = p_customer)
  INTO booked, balance, debt, elsewhere
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
  -- Before all charges: who owes credits has none that are free.
  IF debt > 0 THEN
    paid := least(debt, greatest(0, balance));
    balance := balance - paid;
  END IF;
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
  IF paid > 0 THEN PERFORM pay_debt(p_customer, paid, 'Credits owed for money that went back'); END IF;
END $$;
