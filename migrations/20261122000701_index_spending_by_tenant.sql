-- no-transaction
-- What a tenant has spent in a day is asked before calls that cost money (cost.tenant_daily_budget).
CREATE INDEX CONCURRENTLY IF NOT EXISTS spending_by_tenant ON spending (tenant, day)
    INCLUDE (cost_nanos) WHERE tenant IS NOT NULL;
