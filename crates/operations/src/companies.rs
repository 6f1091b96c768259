//! Own companies of tenants: files and forms of them, checked before anything is written.

use std::collections::HashSet;

use serde::Deserialize;

pub use docmill_core::model::OwnCompany;

pub use docmill_ledger::db::operators::companies::{list_all_companies, list_companies};

use docmill_core::fault;
use docmill_formats::notation::account;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::{AuditNote, companies};

/// Bytes of a file of companies.
pub const MAX_FILE_BYTES: usize = 4 << 20;

/// Why companies are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RefusedCompanies(pub String);

/// Why companies were not changed.
#[derive(Debug, thiserror::Error)]
pub enum CompanyChangeError {
    /// They are not sound.
    #[error(transparent)]
    Refused(#[from] RefusedCompanies),
    /// Postgres did not answer.
    #[error(transparent)]
    Fault(#[from] fault::Error),
}

/// The file: `[[company]]` tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompanyFile {
    #[serde(default)]
    company: Vec<OwnCompany>,
}

/// Reads a file of companies.
///
/// # Errors
/// It is no such file, by line; a company has a fault.
pub fn parse_companies(text: &str) -> Result<Vec<OwnCompany>, RefusedCompanies> {
    if text.len() > MAX_FILE_BYTES {
        return Err(RefusedCompanies(format!("the file is larger than {MAX_FILE_BYTES} bytes")));
    }
    let file: CompanyFile = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        RefusedCompanies(format!("line {line}: {}", error.message()))
    })?;
    check_companies(&file.company)?;
    Ok(file.company)
}

/// Whether companies, of one tenant or several, can be taken.
///
/// # Errors
/// The first fault, by the company's place.
pub fn check_companies(all: &[OwnCompany]) -> Result<(), RefusedCompanies> {
    let mut names = HashSet::new();
    for (company, number) in all.iter().zip(1..) {
        if let Some(problem) = find_problem(company) {
            return Err(RefusedCompanies(format!("company {number}: {problem}")));
        }
        if !names.insert((&company.tenant, &company.name)) {
            return Err(RefusedCompanies(format!("company {number}: its name is there twice")));
        }
        let own = all.iter().filter(|other| other.tenant == company.tenant).count();
        if own > OwnCompany::MAX_PER_TENANT {
            return Err(too_many());
        }
    }
    Ok(())
}

fn too_many() -> RefusedCompanies {
    RefusedCompanies(format!("a tenant may have {} companies", OwnCompany::MAX_PER_TENANT))
}

fn find_problem(company: &OwnCompany) -> Option<String> {
    if company.tenant.as_deref() == Some("") {
        return Some("tenant: empty; leave it out for documents without a tenant".to_owned());
    }
    company.find_problem().or_else(|| {
        let at = company.accounts.iter().position(|text| !account::is_iban(text))?;
        Some(format!("accounts[{at}]: not an IBAN, or its check digits are wrong"))
    })
}

/// Puts these companies in the place of all of the tenant's.
///
/// # Errors
/// [`CompanyChangeError`].
pub async fn replace_companies(
    db: &Db,
    tenant: Option<&str>,
    own: &[OwnCompany],
    by: &AuditNote,
) -> Result<(), CompanyChangeError> {
    check_companies(own)?;
    Ok(companies::replace_companies(db, tenant, own, by).await?)
}

/// Adds a company, or replaces the one of its name.
///
/// # Errors
/// [`CompanyChangeError`].
pub async fn put_company(
    db: &Db,
    company: &OwnCompany,
    by: &AuditNote,
) -> Result<(), CompanyChangeError> {
    check_companies(std::slice::from_ref(company))?;
    match companies::put_company(db, company, by).await? {
        true => Ok(()),
        false => Err(too_many().into()),
    }
}

/// Removes a company of a tenant; `false`: it has none of this name.
///
/// # Errors
/// Faults of Postgres.
pub async fn remove_company(
    db: &Db,
    tenant: Option<&str>,
    name: &str,
    by: &AuditNote,
) -> fault::Result<bool> {
    companies::remove_company(db, tenant, name, by).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_companies_is_read_whole_or_refused_by_its_line() {
        let good = "[[company]]\nname = \"A GmbH\"\nvat_ids = [\"DE129273398\"]\n\
                    [[company]]\ntenant = \"acme\"\nname = \"A GmbH\"\n";
        let read = parse_companies(good).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].tenant.as_deref(), Some("acme"));
        let huge = format!("# {}\n", "x".repeat(MAX_FILE_BYTES));
        let many = "[[company]]\nname = \"Ab\"\n".repeat(2);
        for (text, problem) in [
            ("[[company]]\nname = \"A GmbH\"\nvat = 1\n", "line 3: "),
            ("[[company]]\nname = 3\n", "line 2: "),
            ("[[company]]\nname = \"-\"\n", "company 1: name: "),
            (
                "[[company]]\nname = \"A GmbH\"\naccounts = [\"DE89370400440532013001\"]\n",
                "company 1: accounts[0]: ",
            ),
            ("[[company]]\nname = \"A GmbH\"\ntenant = \"\"\n", "company 1: tenant: "),
            (many.as_str(), "company 2: its name is there twice"),
            (huge.as_str(), "the file is larger"),
        ] {
            let refused = parse_companies(text).unwrap_err().0;
            assert!(refused.starts_with(problem), "{refused}");
            assert!(!refused.contains("DE89"), "no value is repeated: {refused}");
        }
        let rows =
            (0..=OwnCompany::MAX_PER_TENANT).map(|at| format!("[[company]]\nname = \"A {at}\"\n"));
        let refused = parse_companies(&rows.collect::<String>()).unwrap_err();
        assert_eq!(refused.0, "a tenant may have 500 companies");
    }
}
