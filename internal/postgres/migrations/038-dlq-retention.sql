-- What retention looks for: the oldest dead letters of all customers.
CREATE INDEX dlq_items_by_age ON dlq_items (created_at);
