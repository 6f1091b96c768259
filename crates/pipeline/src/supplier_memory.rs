//! The memory of a tenant's suppliers, as the steps use it: looked up before the extraction by what the
//! pages print, and before the verdict by what was read.
//!
//! A model's word alone never finds a supplier before its reading: identifiers are those of the pages.
//! Not promised: a supplier of whom the pages print neither VAT id, account nor name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::context::AttemptContext;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use docmill_core::model::Transcript;
use docmill_core::work_clock::wait_off_clock;
use docmill_extract::memory::{
    MAX_REMEMBERED, PrintedIdentifiers, RememberedPages, SupplierRecall, find_identifiers,
};
use docmill_gate::SupplierHistory;
use docmill_gate::kinds::{FieldRole, Kind};
use docmill_ledger::supplier::{
    RememberedDocument, SupplierDocuments, SupplierIdentity, SupplierLesson, SupplierProperty,
    group_by_supplier, normalize_number, supplier_key,
};
use docmill_storage::{GetOptions, GetResult};

/// Bytes of a stored transcript that is read again; a longer document teaches only who its supplier is.
const MAX_TRANSCRIPT_BYTES: u64 = 4 << 20;
/// Persons' confirmations from which on an account counts beside the newest one.
const MIN_CONFIRMATIONS: usize = 2;

/// The supplier of a document, as its data names it.
pub fn identify_supplier(kind: &Kind, data: &Map<String, Value>) -> SupplierIdentity {
    let text = |role: FieldRole| {
        let value = data.get(kind.field_of(role)).and_then(Value::as_str);
        value.map(str::to_owned).filter(|text| !text.trim().is_empty())
    };
    let further = data.get(kind.field_of(FieldRole::FurtherAccounts)).and_then(Value::as_array);
    let further = further.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    SupplierIdentity {
        name: text(FieldRole::SupplierName),
        vat_id: text(FieldRole::SupplierVatId),
        accounts: text(FieldRole::Iban).into_iter().chain(further).collect(),
    }
}

/// The lesson of a document with this data; `None` if its supplier is not identified.
pub fn lesson_of(
    kind: &Kind,
    tenant: Option<&str>,
    data: &Map<String, Value>,
) -> Option<SupplierLesson> {
    SupplierLesson::new(tenant, &kind.name, &identify_supplier(kind, data))
}

/// The keys by which the supplier of a document with this data is looked up.
pub fn lookup_keys(kind: &Kind, tenant: Option<&str>, data: &Map<String, Value>) -> Vec<String> {
    let (identity, tenant) = (identify_supplier(kind, data), tenant.unwrap_or_default());
    let mut keys = identity.own_keys(tenant);
    keys.extend(identity.account_keys(tenant));
    keys
}

/// Confirmed values of the supplier of a document with this data, and of other suppliers.
pub fn gather_history(
    kind: &Kind,
    tenant: Option<&str>,
    data: &Map<String, Value>,
    found: Vec<RememberedDocument>,
) -> SupplierHistory {
    let identity = identify_supplier(kind, data);
    let own_keys = identity.own_keys(tenant.unwrap_or_default());
    let named: BTreeSet<String> = identity.accounts.iter().map(|it| normalize_number(it)).collect();
    let mut history = SupplierHistory::default();
    for group in group_by_supplier(found) {
        let is_own = group.iter().any(|it| it.keys.iter().any(|key| own_keys.contains(key)));
        if !is_own {
            let accounts = group.iter().flat_map(|it| accounts_of(kind, it));
            history.accounts_of_others.extend(accounts.filter(|account| named.contains(account)));
            continue;
        }
        history.accounts.extend(confirmed_accounts(kind, &group));
        let currency = kind.field_of(FieldRole::Currency);
        for document in &group {
            let code = document.data.get(currency).and_then(Value::as_str);
            history.currencies.extend(code.map(str::to_owned));
            if document.kind == kind.name {
                note_values(&mut history.values, &document.data);
            }
        }
    }
    history
}

fn note_values(values: &mut BTreeMap<String, Vec<Value>>, data: &Map<String, Value>) {
    for (field, value) in data.iter().filter(|(_, value)| value.is_string() || value.is_number()) {
        values.entry(field.clone()).or_default().push(value.clone());
    }
}

fn accounts_of(kind: &Kind, document: &RememberedDocument) -> Vec<String> {
    let identity = identify_supplier(kind, &document.data);
    identity.accounts.iter().map(|account| normalize_number(account)).collect()
}

/// An account that was confirmed of a supplier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownAccount {
    /// The account: letters and digits in upper case.
    pub account: String,
    /// Since when it is known.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// How many remembered documents have it.
    pub documents: usize,
}

/// The accounts of the supplier of a document with this data, the oldest first.
pub fn list_accounts(
    kind: &Kind,
    tenant: Option<&str>,
    data: &Map<String, Value>,
    found: Vec<RememberedDocument>,
) -> Vec<KnownAccount> {
    let own_keys = identify_supplier(kind, data).own_keys(tenant.unwrap_or_default());
    let groups = group_by_supplier(found).into_iter();
    let own = groups
        .filter(|group| group.iter().any(|it| it.keys.iter().any(|key| own_keys.contains(key))));
    let mut known: BTreeMap<String, (OffsetDateTime, usize)> = BTreeMap::new();
    for document in own.flatten() {
        for account in accounts_of(kind, &document) {
            let (since, documents) = known.entry(account).or_insert((document.learned_at, 0));
            *since = document.learned_at.min(*since);
            *documents += 1;
        }
    }
    let known = known.into_iter();
    let mut known: Vec<KnownAccount> = known
        .map(|(account, (since, documents))| KnownAccount { account, since, documents })
        .collect();
    known.sort_by_key(|it| it.since);
    known
}

/// The accounts that count as a supplier's: those of the newest confirmed document that has one, and
/// those that persons confirmed more than once. One wrong confirmation ends with the next right one.
fn confirmed_accounts(kind: &Kind, group: &SupplierDocuments) -> BTreeSet<String> {
    let mut confirmations: BTreeMap<String, usize> = BTreeMap::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for document in group {
        let accounts: BTreeSet<String> = accounts_of(kind, document).into_iter().collect();
        if known.is_empty() {
            known.clone_from(&accounts);
        }
        for account in accounts.into_iter().filter(|_| document.source.is_by_person()) {
            *confirmations.entry(account).or_default() += 1;
        }
    }
    let repeated = confirmations.into_iter().filter(|(_, times)| *times >= MIN_CONFIRMATIONS);
    known.extend(repeated.map(|(account, _)| account));
    known
}

/// Looks up what was confirmed of the supplier that this data names.
///
/// # Errors
/// Ledger errors.
pub(super) async fn find_history(
    attempt: AttemptContext<'_>,
    kind: &Kind,
    data: &Map<String, Value>,
) -> Result<SupplierHistory, StepError> {
    let tenant = attempt.claimed.tenant.as_deref();
    let found = find_others(attempt, &lookup_keys(kind, tenant, data)).await?;
    Ok(gather_history(kind, tenant, data, found))
}

/// Remembered documents with one of these keys, but for the document itself: it confirms nothing of
/// its next reading.
async fn find_others(
    attempt: AttemptContext<'_>,
    keys: &[String],
) -> Result<Vec<RememberedDocument>, StepError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let (ledger, claimed) = (&attempt.context.ledger, attempt.claimed);
    let finding = ledger.find_remembered(claimed.tenant.as_deref(), keys);
    let mut found = wait_off_clock(finding).await?;
    found.retain(|it| it.document_id != claimed.document.id.0);
    Ok(found)
}

/// Recalls the confirmed documents of the supplier that the pages identify.
///
/// # Errors
/// Ledger and store errors; rejected if reading the text takes too long.
pub(super) async fn recall_supplier(
    attempt: AttemptContext<'_>,
    kind: &Arc<Kind>,
    transcript: &Arc<Transcript>,
) -> Result<SupplierRecall, StepError> {
    if !kind.has_role(FieldRole::SupplierName) {
        return Ok(SupplierRecall::default());
    }
    let pages = Arc::clone(transcript);
    let printed = run_on_text(attempt.services(), move || find_identifiers(&pages)).await?;
    let printed = PrintedKeys::new(attempt.claimed.tenant.as_deref(), &printed);
    let found = find_others(attempt, &printed.all()).await?;
    let Some((mut group, prints_account)) = choose_supplier(&printed, found) else {
        return Ok(SupplierRecall::default());
    };
    // Another kind of the same program has its labels and places as well.
    group.sort_by_key(|it| it.kind != kind.name);
    let mut documents = Vec::new();
    for document in group.into_iter().take(MAX_REMEMBERED) {
        documents.extend(load_pages(attempt, document).await?);
    }
    Ok(SupplierRecall { documents, prints_account })
}

/// The keys of what the pages print.
struct PrintedKeys {
    vat_ids: BTreeSet<String>,
    accounts: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl PrintedKeys {
    fn new(tenant: Option<&str>, printed: &PrintedIdentifiers) -> Self {
        let tenant = tenant.unwrap_or_default();
        let keys = |property, texts: &BTreeSet<String>| {
            texts.iter().filter_map(|text| supplier_key(tenant, property, text)).collect()
        };
        Self {
            vat_ids: keys(SupplierProperty::VatId, &printed.vat_ids),
            accounts: keys(SupplierProperty::Account, &printed.accounts),
            names: keys(SupplierProperty::Name, &printed.names),
        }
    }

    fn all(&self) -> Vec<String> {
        self.vat_ids.iter().chain(&self.accounts).chain(&self.names).cloned().collect()
    }
}

/// The one supplier that the pages identify, and whether by an account. A name alone identifies nobody
/// where the pages print a VAT id or an account: it may be anybody's that is mentioned.
fn choose_supplier(
    printed: &PrintedKeys,
    found: Vec<RememberedDocument>,
) -> Option<(SupplierDocuments, bool)> {
    let has_numbers = !printed.vat_ids.is_empty() || !printed.accounts.is_empty();
    let has = |group: &SupplierDocuments, keys: &BTreeSet<String>| {
        group.iter().any(|it| it.keys.iter().any(|key| keys.contains(key)))
    };
    let mut ranked: Vec<(u32, bool, SupplierDocuments)> = Vec::new();
    for group in group_by_supplier(found) {
        let by_account = has(&group, &printed.accounts);
        let (by_id, by_name) = (has(&group, &printed.vat_ids), has(&group, &printed.names));
        if by_id || by_account || by_name && !has_numbers {
            let rank = 4 * u32::from(by_account) + 2 * u32::from(by_id) + u32::from(by_name);
            ranked.push((rank, by_account, group));
        }
    }
    let best = ranked.iter().map(|(rank, ..)| *rank).max()?;
    let mut leading = ranked.into_iter().filter(|(rank, ..)| *rank == best);
    let (_, by_account, group) = leading.next()?;
    leading.next().is_none().then_some((group, by_account))
}

/// The pages of a remembered document; `None` if they are gone or too large.
async fn load_pages(
    attempt: AttemptContext<'_>,
    document: RememberedDocument,
) -> Result<Option<RememberedPages>, StepError> {
    let Some(key) = document.transcript.filter(|key| key.ends_with(".json")) else {
        return Ok(None);
    };
    let what = GetOptions { at_most: MAX_TRANSCRIPT_BYTES, if_match: None };
    let GetResult::Found(object) = attempt.artefacts().get(&key, what).await? else {
        return Ok(None);
    };
    let bytes = object.bytes;
    let read = run_on_text(attempt.services(), move || {
        serde_json::from_slice::<Transcript>(&bytes).ok().map(Arc::new)
    });
    let (data, learned_at) = (document.data, document.learned_at);
    Ok(read.await?.map(|transcript| RememberedPages { transcript, data, learned_at }))
}

#[cfg(test)]
mod guard_tests;

#[cfg(test)]
mod tests {
    use docmill_core::config::KindsConfig;
    use docmill_core::model::DocumentId;
    use docmill_gate::kinds::KindSet;
    use docmill_ledger::supplier::LessonSource;
    use serde_json::json;

    use super::*;

    const FIRST: &str = "DE02120300000000202051";
    const SECOND: &str = "DE75512108001245126199";

    fn kind() -> Arc<Kind> {
        Arc::clone(KindSet::load(&KindsConfig::default()).unwrap().get("invoice").unwrap())
    }

    fn data(name: &str, vat_id: &str, iban: &str) -> Map<String, Value> {
        let vat_id = (!vat_id.is_empty()).then_some(vat_id);
        let data = json!({"supplier_name": name, "supplier_vat_id": vat_id, "iban": iban,
            "currency": "EUR", "invoice_number": "RE-1", "total": 10});
        data.as_object().unwrap().clone()
    }

    fn remembered(data: Map<String, Value>, source: LessonSource, day: i64) -> RememberedDocument {
        RememberedDocument {
            document_id: DocumentId::random().0,
            keys: lesson_of(&kind(), Some("t"), &data).unwrap().keys,
            kind: "invoice".to_owned(),
            source,
            learned_at: OffsetDateTime::UNIX_EPOCH + time::Duration::days(day),
            data,
            transcript: None,
        }
    }

    fn known(history: &[(LessonSource, &str)]) -> Vec<String> {
        let documents = history.iter().zip(0..).map(|((source, iban), day)| {
            remembered(data("Korkstein", "DE123456789", iban), *source, day)
        });
        let next = data("Korkstein GmbH", "DE123456789", "");
        let history = gather_history(&kind(), Some("t"), &next, documents.collect());
        history.accounts.into_iter().collect()
    }

    #[test]
    fn one_wrong_confirmation_of_an_account_ends_with_the_next_right_one() {
        use LessonSource::{Accepted, Corrected, Exact};
        for (history, expected) in [
            (&[(Accepted, FIRST)][..], &[FIRST][..]),
            // The second was confirmed by mistake, then the first again.
            (&[(Accepted, FIRST), (Accepted, SECOND), (Corrected, FIRST)], &[FIRST]),
            // An honest change, and a supplier with two accounts.
            (&[(Accepted, FIRST), (Accepted, SECOND)], &[SECOND]),
            (&[(Accepted, FIRST), (Accepted, FIRST), (Accepted, SECOND)], &[FIRST, SECOND]),
            // E-invoices that no person has seen never outlast a person's word.
            (&[(Exact, FIRST), (Exact, FIRST), (Accepted, SECOND)], &[SECOND]),
        ] {
            assert_eq!(known(history), expected, "{history:?}");
        }
    }

    #[test]
    fn a_known_supplier_is_found_by_name_or_vat_id_and_anothers_account_is_told() {
        let found = || {
            vec![
                remembered(data("Korkstein", "DE123456789", FIRST), LessonSource::Accepted, 1),
                remembered(data("Weber", "DE987654321", SECOND), LessonSource::Accepted, 1),
            ]
        };
        for (next, accounts, others) in [
            (data("Korkstein", "", SECOND), &[FIRST][..], &[SECOND][..]),
            (data("Somebody else", "DE 123 456 789", SECOND), &[FIRST], &[SECOND]),
            // Another VAT id under a known name is still held against what is known of the name.
            (data("Korkstein", "DE111111111", "NL91ABNA0417164300"), &[FIRST], &[]),
            (data("Unknown", "DE111111111", SECOND), &[], &[SECOND]),
        ] {
            let history = gather_history(&kind(), Some("t"), &next, found());
            let told = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
            assert_eq!(told(&history.accounts), accounts, "{next:?}");
            assert_eq!(told(&history.accounts_of_others), others, "{next:?}");
        }
    }

    #[test]
    fn pages_identify_a_supplier_by_its_numbers_and_by_a_name_only_without_any() {
        let found = || {
            vec![
                remembered(data("Korkstein", "DE123456789", FIRST), LessonSource::Accepted, 1),
                remembered(data("Weber", "DE987654321", SECOND), LessonSource::Accepted, 1),
            ]
        };
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        for (vat_ids, accounts, names, expected) in [
            (&["DE123456789"][..], &[][..], &[][..], Some("Korkstein")),
            (&["DE123456789", "DE987654321"], &[], &[], None),
            (&["DE123456789", "DE987654321"], &[SECOND], &[], Some("Weber")),
            (&[], &[], &["Weber GmbH"], Some("Weber")),
            (&["DE111111111"], &[], &["Weber GmbH"], None),
            (&[], &[], &["Schulz"], None),
        ] {
            let printed = PrintedIdentifiers {
                vat_ids: set(vat_ids),
                accounts: set(accounts),
                names: set(names),
            };
            let chosen = choose_supplier(&PrintedKeys::new(Some("t"), &printed), found());
            let name =
                chosen.as_ref().and_then(|(group, _)| group.first()?.data.get("supplier_name"));
            assert_eq!(name.and_then(Value::as_str), expected, "{printed:?}");
            let other_tenant = PrintedKeys::new(Some("u"), &printed);
            assert!(choose_supplier(&other_tenant, found()).is_none(), "of another tenant");
        }
    }
}
