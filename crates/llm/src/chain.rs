//! The chain of escalation: which model is asked first, and which ones next where the gate says
//! `again`.

use std::sync::Arc;

use super::Llm;
use super::batch::BatchApi;
use docmill_core::model::PictureRule;

/// One model of a chain.
#[derive(Clone)]
pub struct ChainModel {
    /// The client of this model.
    pub llm: Arc<dyn Llm>,
    /// Kinds of documents that it is asked about; empty: all.
    pub kinds: Vec<String>,
    /// Most tokens of its replies.
    pub max_output_tokens: u32,
    /// How it takes pictures; none: it is shown text only.
    pub pictures: Option<PictureRule>,
    /// How it is asked in batches, if it may be.
    pub batches: Option<Arc<dyn BatchApi>>,
}

/// Models in the order in which they are asked, weakest first. Empty: none is configured.
#[derive(Clone, Default)]
pub struct ModelChain(Vec<ChainModel>);

impl ModelChain {
    /// Builds the chain; models are asked in this order.
    pub fn new(rungs: Vec<ChainModel>) -> Self {
        Self(rungs)
    }

    /// One model for every kind.
    pub fn from_single(llm: Arc<dyn Llm>, max_output_tokens: u32) -> Self {
        let kinds = Vec::new();
        Self(vec![ChainModel { llm, kinds, max_output_tokens, pictures: None, batches: None }])
    }

    /// Whether there is no model at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All models, in the order of escalation.
    pub fn iter(&self) -> impl Iterator<Item = &ChainModel> {
        self.0.iter()
    }

    /// Those of the models that may be asked in batches, each once.
    pub fn batch_apis(&self) -> Vec<Arc<dyn BatchApi>> {
        let mut apis: Vec<Arc<dyn BatchApi>> = Vec::new();
        for api in self.0.iter().filter_map(|rung| rung.batches.as_ref()) {
            if !apis.iter().any(|known: &Arc<dyn BatchApi>| {
                (known.provider(), known.model(), known.place())
                    == (api.provider(), api.model(), api.place())
            }) {
                apis.push(Arc::clone(api));
            }
        }
        apis
    }

    /// The models that documents of this kind are read by.
    pub fn for_kind(&self, kind: &str) -> Vec<ChainModel> {
        let asked =
            |rung: &&ChainModel| rung.kinds.is_empty() || rung.kinds.iter().any(|it| it == kind);
        let mut asked: Vec<ChainModel> = self.0.iter().filter(asked).cloned().collect();
        // Kept by each of thousands of jobs that wait; a list begins with room for four.
        asked.shrink_to_fit();
        asked
    }
}
