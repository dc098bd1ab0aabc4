-- What a customer has of a kind is counted before it gets one more (docs/reference/api.md, "Limits").
CREATE INDEX taken_ids_of_customer ON taken_ids (customer_id, kind);
CREATE INDEX customers_created_by ON customers (created_by) WHERE created_by IS NOT NULL;
