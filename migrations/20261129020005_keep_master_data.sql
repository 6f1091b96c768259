-- Suppliers and orders of the ERP. The release before reads none: its results carry no match.
CREATE TABLE master_supplier (
    tenant text NOT NULL DEFAULT '',
    number text NOT NULL CHECK (char_length(number) BETWEEN 1 AND 200),
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    vat_ids text[] NOT NULL DEFAULT '{}' CHECK (cardinality(vat_ids) <= 50),
    accounts text[] NOT NULL DEFAULT '{}' CHECK (cardinality(accounts) <= 50),
    PRIMARY KEY (tenant, number)
);
COMMENT ON TABLE master_supplier IS 'Suppliers of a tenant, as its ERP has them.';
COMMENT ON COLUMN master_supplier.tenant IS
    'Whose, as in document.tenant; empty: that of documents without a tenant.';
COMMENT ON COLUMN master_supplier.number IS 'The supplier''s number in the ERP.';
COMMENT ON COLUMN master_supplier.name IS 'Its name.';
COMMENT ON COLUMN master_supplier.vat_ids IS 'Its VAT identifiers.';
COMMENT ON COLUMN master_supplier.accounts IS 'Its bank accounts.';

CREATE TABLE master_supplier_mark (
    tenant text NOT NULL,
    sort text NOT NULL CHECK (sort IN ('vat_id', 'account', 'name')),
    mark text NOT NULL CHECK (char_length(mark) BETWEEN 1 AND 400),
    number text NOT NULL,
    PRIMARY KEY (tenant, sort, mark, number),
    FOREIGN KEY (tenant, number) REFERENCES master_supplier (tenant, number) ON DELETE CASCADE
);
CREATE INDEX master_supplier_mark_by_number ON master_supplier_mark (tenant, number);
COMMENT ON TABLE master_supplier_mark IS 'By what suppliers are found, folded.';
COMMENT ON COLUMN master_supplier_mark.tenant IS 'As in master_supplier.';
COMMENT ON COLUMN master_supplier_mark.sort IS 'vat_id, account or name.';
COMMENT ON COLUMN master_supplier_mark.mark IS
    'The value in letters and digits alone, lower case; a name without its legal form.';
COMMENT ON COLUMN master_supplier_mark.number IS 'Whose, as in master_supplier.';

CREATE TABLE master_order (
    tenant text NOT NULL DEFAULT '',
    number text NOT NULL CHECK (char_length(number) BETWEEN 1 AND 200),
    mark text NOT NULL CHECK (char_length(mark) BETWEEN 1 AND 400),
    supplier text CHECK (char_length(supplier) BETWEEN 1 AND 200),
    amount numeric(24, 4),
    currency text CHECK (char_length(currency) = 3),
    PRIMARY KEY (tenant, number)
);
CREATE INDEX master_order_by_mark ON master_order (tenant, mark);
COMMENT ON TABLE master_order IS 'Purchase orders of a tenant, as its ERP has them.';
COMMENT ON COLUMN master_order.tenant IS
    'Whose, as in document.tenant; empty: that of documents without a tenant.';
COMMENT ON COLUMN master_order.number IS 'The number of the order.';
COMMENT ON COLUMN master_order.mark IS 'The number in letters and digits alone, lower case.';
COMMENT ON COLUMN master_order.supplier IS 'The number of its supplier in the ERP; null: unknown.';
COMMENT ON COLUMN master_order.amount IS 'Its amount; null: unknown.';
COMMENT ON COLUMN master_order.currency IS 'ISO 4217; null: unknown.';

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT ON master_supplier, master_supplier_mark, master_order TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, DELETE ON master_supplier, master_supplier_mark, master_order
            TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON master_supplier, master_supplier_mark, master_order TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON master_supplier, master_supplier_mark, master_order TO docmill_migrator;
    END IF;
END
$$;
