//! `[parties]`: who the buyer is.

use serde::{Deserialize, Serialize};

use crate::model::OwnCompany;

/// `[parties]`: companies that documents are addressed to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartiesConfig {
    /// Own companies, beside those in the database: never the supplier, always a sign of the buyer.
    pub companies: Vec<OwnCompany>,
}

impl PartiesConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.companies.len() > OwnCompany::MAX_PER_TENANT {
            let most = OwnCompany::MAX_PER_TENANT;
            problems.push(format!("parties.companies may have {most} entries"));
        }
        let wrong = self.companies.iter().enumerate().filter_map(|(at, company)| {
            let problem = company.find_problem()?;
            Some(format!("parties.companies[{at}].{problem}"))
        });
        problems.extend(wrong);
    }
}
