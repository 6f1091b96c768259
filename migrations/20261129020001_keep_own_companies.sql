-- Own companies of tenants. The release before neither reads nor writes them: its workers choose suppliers
-- as before.
CREATE TABLE own_company (
    tenant text NOT NULL DEFAULT '',
    name text NOT NULL CHECK (char_length(name) BETWEEN 2 AND 200),
    other_names text[] NOT NULL DEFAULT '{}' CHECK (cardinality(other_names) <= 50),
    vat_ids text[] NOT NULL DEFAULT '{}' CHECK (cardinality(vat_ids) <= 50),
    accounts text[] NOT NULL DEFAULT '{}' CHECK (cardinality(accounts) <= 50),
    addresses text[] NOT NULL DEFAULT '{}' CHECK (cardinality(addresses) <= 50),
    set_at timestamptz NOT NULL DEFAULT docmill_now(),
    set_by text NOT NULL,
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE own_company IS
    'Companies of a tenant: never the supplier of its documents, always a sign of the buyer.';
COMMENT ON COLUMN own_company.tenant IS
    'Whose, as in document.tenant; empty: that of documents without a tenant.';
COMMENT ON COLUMN own_company.name IS 'The full name, with the legal form.';
COMMENT ON COLUMN own_company.other_names IS 'Other names that it is written to under.';
COMMENT ON COLUMN own_company.vat_ids IS 'Its VAT identifiers.';
COMMENT ON COLUMN own_company.accounts IS 'Its bank accounts, as IBANs.';
COMMENT ON COLUMN own_company.addresses IS 'Its addresses, each in one line.';
COMMENT ON COLUMN own_company.set_at IS 'When it was set last.';
COMMENT ON COLUMN own_company.set_by IS 'By whom.';

-- Three more actions are recorded: companies, suppliers and orders that an operator sets.
ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check CHECK (action IN
    ('reopen', 'cancel', 'pause', 'resume', 'block', 'unblock', 'reprioritize', 'erase',
     'retain', 'replay', 'enable', 'download', 'password', 'companies', 'suppliers', 'orders'))
    NOT VALID;

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_worker') THEN
        GRANT SELECT ON own_company TO docmill_worker;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_operator') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON own_company TO docmill_operator;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_reader') THEN
        GRANT SELECT ON own_company TO docmill_reader;
    END IF;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'docmill_migrator') THEN
        GRANT ALL ON own_company TO docmill_migrator;
    END IF;
END
$$;
