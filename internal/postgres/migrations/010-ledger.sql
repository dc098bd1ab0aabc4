-- Credits by group commit (docs/architecture/protocol.md, "Credits"). A node is one run of a process, named by its
-- boot UUID. It charges with charge_credits, one statement in flight a customer; close_ledger_node takes back what a
-- node that is gone had charged and not settled.
--
-- Lock order everywhere: ledger_nodes, settlements, customers (by customer_id), then what hangs on them.

CREATE TABLE ledger_nodes (
  boot      uuid PRIMARY KEY,
  opened_at timestamptz NOT NULL DEFAULT now()
);

-- One row a node and customer. A closed node has none, and cannot get one again.
CREATE TABLE settlements (
  boot        uuid NOT NULL,
  customer_id text NOT NULL,
  -- Charged, and not yet known to be stored or credited back.
  unsettled   bigint NOT NULL DEFAULT 0 CHECK (unsettled >= 0),
  -- The last statement applied and its answer: a statement sent again after a broken connection gets the
  -- answer of the first and changes nothing, whichever of the two arrives first.
  number      bigint NOT NULL DEFAULT 0,
  granted     integer NOT NULL DEFAULT 0,
  balance     bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (boot, customer_id)
) WITH (fillfactor = 50);

-- Consumption stands in one row a customer, buffer and minute. Other transactions have neither column.
ALTER TABLE credit_transactions ADD COLUMN buffer_uid uuid, ADD COLUMN minute timestamptz;
CREATE UNIQUE INDEX credit_transactions_of_minute
  ON credit_transactions (customer_id, buffer_uid, type, minute) WHERE minute IS NOT NULL;
ALTER TABLE credit_transactions SET (fillfactor = 80);
ALTER TABLE customers SET (fillfactor = 50);

-- Accepted items of a buffer and UTC day (analytics, `ingestCount`); no trigger fires on it.
CREATE TABLE ingest_days (
  buffer_uid   uuid NOT NULL,
  day          date NOT NULL,
  customer_id  text NOT NULL,
  ingest_count bigint NOT NULL CHECK (ingest_count >= 0),
  PRIMARY KEY (buffer_uid, day)
) WITH (fillfactor = 50);

-- Books consumption of one buffer (spent > 0) or takes some back (spent < 0). What is taken back lessens
-- the newest consumption row that is large enough, so that a duplicate leaves no trace; else it stands as
-- a refund of its own.
CREATE FUNCTION book_consumption(p_customer text, p_buffer uuid, p_spent bigint, p_balance bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  this_minute timestamptz := date_trunc('minute', now());
  kind        text := CASE WHEN p_spent > 0 THEN 'consumption' ELSE 'refund' END;
BEGIN
  IF p_spent < 0 THEN
    UPDATE credit_transactions SET amount = amount - p_spent, balance_after = p_balance
    WHERE transaction_id = (
      SELECT transaction_id FROM credit_transactions
      WHERE customer_id = p_customer AND buffer_uid = p_buffer AND type = 'consumption'
        AND minute > this_minute - interval '5 minutes' AND amount <= p_spent
      ORDER BY minute DESC LIMIT 1);
    IF FOUND THEN
      DELETE FROM credit_transactions
      WHERE customer_id = p_customer AND buffer_uid = p_buffer AND type = 'consumption'
        AND minute > this_minute - interval '5 minutes' AND amount = 0;
      RETURN;
    END IF;
  END IF;
  UPDATE credit_transactions SET amount = amount - p_spent, balance_after = p_balance
  WHERE customer_id = p_customer AND buffer_uid = p_buffer AND type = kind AND minute = this_minute;
  IF NOT FOUND THEN
    INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after, buffer_uid, minute)
    VALUES (p_customer, -p_spent, kind,
      CASE kind WHEN 'refund' THEN 'Credited back to ' ELSE 'Ingest to ' END
        || coalesce((SELECT buffer_id FROM buffers WHERE uid = p_buffer), p_buffer::text),
      p_balance, p_buffer, this_minute);
  END IF;
END $$;

-- Counts accepted items of today, or takes some back from the newest day that has them.
CREATE FUNCTION count_ingest(p_customer text, p_buffer uuid, p_items bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_items > 0 THEN
    INSERT INTO ingest_days AS d (buffer_uid, day, customer_id, ingest_count)
    VALUES (p_buffer, (now() AT TIME ZONE 'UTC')::date, p_customer, p_items)
    ON CONFLICT (buffer_uid, day) DO UPDATE SET ingest_count = d.ingest_count + excluded.ingest_count;
  ELSIF p_items < 0 THEN
    UPDATE ingest_days SET ingest_count = ingest_count + p_items
    WHERE buffer_uid = p_buffer AND day = (
      SELECT max(day) FROM ingest_days WHERE buffer_uid = p_buffer AND ingest_count >= -p_items);
  END IF;
END $$;

-- Adds to the balance and to what was used this month; a negative amount charges. The month is UTC's.
CREATE FUNCTION move_credits(p_customer text, p_amount bigint) RETURNS bigint LANGUAGE sql AS $$
  UPDATE customers SET
    credits = credits + p_amount,
    credits_used_this_month = greatest(0, -p_amount + CASE
      WHEN last_reset_at < date_trunc('month', now(), 'UTC') THEN 0 ELSE credits_used_this_month END),
    last_reset_at = greatest(last_reset_at, date_trunc('month', now(), 'UTC'))
  WHERE customer_id = p_customer
  RETURNING credits
$$;

-- Statement number p_number of a node for a customer. Refunds come first, then the charges in their order
-- as far as the balance reaches: the first charge that cannot be paid ends it, `granted` says how many were.
--   p_buffers          the buffers that the rest names by index, from 1
--   p_run_*            the charges in order; equal neighbours are one run of p_run_count
--   p_refund_*         by index of p_buffers: credits and items credited back
--   p_settled          credits of charges that are stored for good
-- is_open: false when the node is closed: it must not go on. balance: afterwards.
CREATE FUNCTION charge_credits(
  p_boot uuid, p_customer text, p_number bigint, p_buffers uuid[],
  p_run_buffer int[], p_run_credits int[], p_run_count int[],
  p_refund_credits bigint[], p_refund_items int[], p_settled bigint,
  OUT is_open boolean, OUT granted int, OUT balance bigint
) LANGUAGE plpgsql AS $$
DECLARE
  applied  bigint;
  spent    bigint[] := p_refund_credits;
  items    bigint[] := p_refund_items;
  total    bigint := 0;
  payable  int;
  booked   bigint;
BEGIN
  is_open := true;
  SELECT s.number, s.granted, s.balance INTO applied, granted, balance
  FROM settlements s WHERE s.boot = p_boot AND s.customer_id = p_customer FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM ledger_nodes n WHERE n.boot = p_boot FOR SHARE;
    IF NOT FOUND THEN is_open := false; RETURN; END IF;
    INSERT INTO settlements (boot, customer_id) VALUES (p_boot, p_customer) ON CONFLICT DO NOTHING;
    SELECT s.number, s.granted, s.balance INTO STRICT applied, granted, balance
    FROM settlements s WHERE s.boot = p_boot AND s.customer_id = p_customer FOR UPDATE;
  END IF;
  IF applied >= p_number THEN RETURN; END IF;
  -- A statement is missing here that the node saw applied (a restored backup): it must not go on either.
  IF applied <> p_number - 1 THEN is_open := false; RETURN; END IF;

  SELECT c.credits INTO balance FROM customers c WHERE c.customer_id = p_customer FOR NO KEY UPDATE;
  balance := coalesce(balance, 0);
  booked := balance;
  granted := 0;
  FOR b IN 1 .. cardinality(p_buffers) LOOP
    balance := balance + p_refund_credits[b];
    spent[b] := -p_refund_credits[b];
    items[b] := -p_refund_items[b];
  END LOOP;
  FOR r IN 1 .. cardinality(p_run_buffer) LOOP
    payable := least(p_run_count[r], balance / p_run_credits[r]);
    granted := granted + payable;
    balance := balance - payable::bigint * p_run_credits[r];
    total := total + payable::bigint * p_run_credits[r];
    spent[p_run_buffer[r]] := spent[p_run_buffer[r]] + payable::bigint * p_run_credits[r];
    items[p_run_buffer[r]] := items[p_run_buffer[r]] + payable;
    EXIT WHEN payable < p_run_count[r];
  END LOOP;

  UPDATE settlements s SET number = p_number, granted = charge_credits.granted, balance = charge_credits.balance,
    unsettled = s.unsettled + total - p_settled - (SELECT coalesce(sum(x), 0) FROM unnest(p_refund_credits) x)
  WHERE s.boot = p_boot AND s.customer_id = p_customer;
  IF balance <> booked THEN PERFORM move_credits(p_customer, balance - booked); END IF;
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

-- Closes a node for good and refunds what it had not settled, exactly: what it sends later is refused.
-- Returns what was refunded to whom; nothing when the node was closed before.
CREATE FUNCTION close_ledger_node(p_boot uuid) RETURNS TABLE (customer_id text, credits bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  owed  record;
  after bigint;
BEGIN
  DELETE FROM ledger_nodes WHERE boot = p_boot;
  IF NOT FOUND THEN RETURN; END IF;
  FOR owed IN
    SELECT s.customer_id AS id, s.unsettled AS amount FROM settlements s
    WHERE s.boot = p_boot ORDER BY s.customer_id FOR UPDATE
  LOOP
    CONTINUE WHEN owed.amount = 0;
    after := move_credits(owed.id, owed.amount);
    INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
    VALUES (owed.id, owed.amount, 'refund', 'Credits of interrupted requests', after);
    RETURN QUERY SELECT owed.id, owed.amount;
  END LOOP;
  DELETE FROM settlements WHERE boot = p_boot;
END $$;
