//! Who reads page images elsewhere: those whom the configuration or a kind names, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::{Config, OcrProvider, StoreBackend};
use crate::kinds::Kinds;
use crate::ocr::Provider;
use crate::ocr::document_ai::{Credentials, DocumentAi};
use crate::ocr::lane::Lane;
use crate::ocr::textract::{Lanes, Textract};
use crate::pipeline::Elsewhere;
use crate::throttle::{Governor, Key};

/// Sets them up; nothing is sent.
///
/// # Errors
/// One is named whose settings are missing or wrong: which, and by whom.
pub(super) async fn elsewhere(config: &Config, kinds: &Kinds) -> anyhow::Result<Elsewhere> {
    let ocr = &config.ocr;
    let providers = named(config, kinds).await?;
    Ok(Elsewhere::new(ocr.providers.clone(), providers, ocr.pictures_in_memory))
}

/// All that are named, by whomever.
///
/// # Errors
/// As [`elsewhere`].
pub(super) async fn named(
    config: &Config,
    kinds: &Kinds,
) -> anyhow::Result<BTreeMap<OcrProvider, Arc<dyn Provider>>> {
    let ocr = &config.ocr;
    let mut named: BTreeSet<OcrProvider> = ocr.providers.iter().copied().collect();
    for kind in kinds.iter() {
        named.extend(kind.read_by.iter().flatten());
    }
    let governor = Arc::new(Governor::new(config.throttle.clone()));
    let mut providers: BTreeMap<OcrProvider, Arc<dyn Provider>> = BTreeMap::new();
    for name in named {
        let provider: Arc<dyn Provider> = match name {
            OcrProvider::Tesseract => continue,
            OcrProvider::DocumentAi => {
                // A kind may name it where `ocr.providers` does not, which is what is checked.
                let problems = ocr.document_ai.problems();
                anyhow::ensure!(
                    problems.is_empty(),
                    "a kind is read by document_ai: {}",
                    problems.join(", ")
                );
                Arc::new(document_ai(config, governor.clone())?)
            }
            OcrProvider::Textract => Arc::new(textract(config, &governor).await),
        };
        providers.insert(name, provider);
    }
    Ok(providers)
}

fn document_ai(config: &Config, governor: Arc<Governor>) -> anyhow::Result<DocumentAi> {
    let config = &config.ocr.document_ai;
    let key = Key {
        provider: DocumentAi::NAME.to_owned(),
        account: format!("{} {}", config.project, config.location),
        model: config.processor.clone(),
    };
    let credentials = Credentials::find(&config.credentials)?;
    Ok(DocumentAi::new(config, credentials, Lane::new(governor, key, DocumentAi::PROCESS))?)
}

async fn textract(config: &Config, governor: &Arc<Governor>) -> Textract {
    let (store, config) = (&config.store, &config.ocr.textract);
    // Textract fetches from S3 itself; another service's buckets are nothing to it.
    let is_aws = store.endpoint.is_empty() || !config.endpoint.is_empty();
    let files = store.backend == StoreBackend::S3 && is_aws;
    let lane = |operation: &'static str| {
        let key = Key {
            provider: Textract::NAME.to_owned(),
            account: format!("aws {}", config.region),
            model: operation.to_owned(),
        };
        Lane::new(Arc::clone(governor), key, operation)
    };
    let lanes = Lanes {
        detect: lane(Textract::DETECT),
        start: lane(Textract::START),
        get: lane(Textract::GET),
    };
    Textract::connect(config, files, lanes).await
}
