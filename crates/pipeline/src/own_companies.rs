//! The own companies of tenants: those of the settings and those of the ledger, kept for a moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use docmill_core::config::PartiesConfig;
use docmill_core::fault;
use docmill_core::model::OwnCompany;
use docmill_core::work_clock::wait_off_clock;
use docmill_gate::OwnCompanies;
use docmill_ledger::AttemptLedger;

/// For how long a tenant's companies are not asked for again: so much later a change takes effect.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Tenants whose companies are kept; beyond it all are asked for again.
const MAX_TENANTS: usize = 1_000;

/// A tenant's companies, and when they were asked for.
#[derive(Debug, Clone)]
struct KnownCompanies {
    asked_at: Instant,
    own: Arc<OwnCompanies>,
    has_master_data: bool,
}

/// The own companies of all tenants.
#[derive(Debug, Default)]
pub struct OwnCompanyBook {
    configured: Vec<OwnCompany>,
    known: Mutex<HashMap<Option<String>, KnownCompanies>>,
}

impl OwnCompanyBook {
    /// With the companies of the settings.
    pub fn new(config: &PartiesConfig) -> Self {
        Self { configured: config.companies.clone(), ..Self::default() }
    }

    /// The companies of one tenant, and of no other.
    ///
    /// # Errors
    /// Ledger errors.
    pub async fn of_tenant(
        &self,
        ledger: &dyn AttemptLedger,
        tenant: Option<&str>,
    ) -> fault::Result<Arc<OwnCompanies>> {
        Ok(self.ask(ledger, tenant).await?.own)
    }

    /// Whether a tenant has master data, as of a moment ago.
    ///
    /// # Errors
    /// Ledger errors.
    pub async fn has_master_data(
        &self,
        ledger: &dyn AttemptLedger,
        tenant: Option<&str>,
    ) -> fault::Result<bool> {
        Ok(self.ask(ledger, tenant).await?.has_master_data)
    }

    async fn ask(
        &self,
        ledger: &dyn AttemptLedger,
        tenant: Option<&str>,
    ) -> fault::Result<KnownCompanies> {
        let key = tenant.map(str::to_owned);
        let known = self.known.lock().get(&key).cloned();
        let fresh = known.filter(|known| known.asked_at.elapsed() < REFRESH_INTERVAL);
        if let Some(known) = fresh {
            return Ok(known);
        }
        let has_master_data = wait_off_clock(ledger.has_master_data(tenant)).await?;
        let mut companies = wait_off_clock(ledger.own_companies(tenant)).await?;
        let configured = self.configured.iter().filter(|it| it.tenant.as_deref() == tenant);
        companies.extend(configured.cloned());
        let own = Arc::new(OwnCompanies::new(&companies));
        let mut all = self.known.lock();
        if all.len() >= MAX_TENANTS {
            all.clear();
        }
        let known = KnownCompanies { asked_at: Instant::now(), own, has_master_data };
        all.insert(key, known.clone());
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use docmill_gate::kinds::FieldRole;
    use docmill_ledger::memory::MemoryLedger;
    use serde_json::json;
    use time::OffsetDateTime;

    use super::*;

    fn company(tenant: Option<&str>, name: &str) -> OwnCompany {
        let tenant = tenant.map(str::to_owned);
        OwnCompany { tenant, name: name.to_owned(), ..OwnCompany::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_has_the_companies_of_settings_and_ledger_and_never_anothers() {
        let ledger = MemoryLedger::new(OffsetDateTime::UNIX_EPOCH);
        ledger.add_own_company(company(Some("acme"), "Of Acme GmbH"));
        let config = PartiesConfig {
            companies: vec![company(Some("acme"), "Also Acme AG"), company(None, "Plain AG")],
        };
        let book = OwnCompanyBook::new(&config);
        let names = ["Of Acme GmbH", "Also Acme AG", "Plain AG", "New AG"];
        let known = async |tenant: Option<&str>| {
            let own = book.of_tenant(&ledger, tenant).await.unwrap();
            names.map(|name| own.is_own_value(FieldRole::SupplierName, &json!(name)))
        };
        assert_eq!(known(Some("acme")).await, [true, true, false, false]);
        assert_eq!(known(Some("rival")).await, [false; 4]);
        assert_eq!(known(None).await, [false, false, true, false]);
        ledger.add_own_company(company(Some("acme"), "New AG"));
        assert_eq!(known(Some("acme")).await, [true, true, false, false], "as of a moment ago");
        tokio::time::advance(REFRESH_INTERVAL).await;
        assert_eq!(known(Some("acme")).await, [true, true, false, true]);
    }
}
