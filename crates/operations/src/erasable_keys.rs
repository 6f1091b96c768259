//! The objects to erase with a tenant's documents. Rows have many writers, so their keys are
//! checked: an original goes only if no row of another tenant names it, by any of its names; of
//! artefacts, only those below the ingestions' own prefixes.
//!
//! Not promised: that an original belongs to the tenant because its row says so; `store.allow` with
//! tenants is for that.

use std::collections::HashSet;

use super::erase::ErasureBackends;
use docmill_core::fault::Result;
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::db::operators::erasure::{self, ErasableDocument};
use docmill_storage::{ObjectStore, keys};

/// Objects listed at a time.
const LIST_PAGE: usize = 1000;

/// The keys that may be deleted.
pub(super) struct ErasableKeys {
    /// Each key once.
    pub(super) keys: Vec<String>,
    /// Originals that stay.
    pub(super) shared: usize,
}

/// Adds the documents that events made of the same objects, if no tenant is recorded for them: an
/// object that is announced and registered has two rows, and both concern the tenant.
pub(super) async fn with_twins(
    places: ErasureBackends<'_>,
    mut batch: Vec<ErasableDocument>,
) -> Result<Vec<ErasableDocument>> {
    let twins: Vec<DocumentId> = batch
        .iter()
        .filter_map(|document| places.store.split_name(&document.file_path))
        .map(|name| DocumentId::from_object(name.bucket, name.key))
        .collect();
    let known: HashSet<DocumentId> = batch.iter().map(|document| document.id).collect();
    let twins = erasure::find_tenantless(places.db, &twins).await?;
    batch.extend(twins.into_iter().filter(|twin| !known.contains(&twin.id)));
    Ok(batch)
}

/// Everything that was stored for these documents: of the tenant that goes as a whole, or (`None`)
/// of those that are marked as past their retention, where the tenant's other documents stay.
pub(super) async fn find_keys(
    places: ErasureBackends<'_>,
    tenant: Option<&str>,
    batch: &[ErasableDocument],
    ingestions: &[IngestionId],
) -> Result<ErasableKeys> {
    let ids: Vec<DocumentId> = batch.iter().map(|document| document.id).collect();
    let names: Vec<[String; 2]> =
        batch.iter().map(|document| both_names(places.store, &document.file_path)).collect();
    let shared = match tenant {
        Some(tenant) => erasure::find_shared(places.db, tenant, &names.concat(), &ids).await?,
        None => erasure::find_kept(places.db, &names.concat()).await?,
    };
    let (mut keys, mut kept) = (Vec::new(), HashSet::new());
    for [name, alias] in names {
        if keys::is_own_artefact(&name) {
            continue;
        }
        if shared.contains(&name) || shared.contains(&alias) {
            kept.insert(name);
        } else {
            keys.push(name);
        }
    }
    for id in ingestions {
        keys.extend(list_below(places.store, &keys::ingestion_prefix(*id)).await?);
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(ErasableKeys { keys, shared: kept.len() })
}

/// The name of an object, and the other one by which a row may call it.
fn both_names(store: &dyn ObjectStore, path: &str) -> [String; 2] {
    match store.split_name(path) {
        Some(name) if !name.foreign => {
            [name.key.to_owned(), format!("s3://{}/{}", name.bucket, name.key)]
        }
        _ => [path.to_owned(), path.to_owned()],
    }
}

async fn list_below(store: &dyn ObjectStore, prefix: &str) -> Result<Vec<String>> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(prefix, after.as_deref(), LIST_PAGE).await?;
        after = page.last().map(|entry| entry.key.clone());
        let whole = page.len() < LIST_PAGE;
        keys.extend(page.into_iter().map(|entry| entry.key));
        if whole {
            return Ok(keys);
        }
    }
}
