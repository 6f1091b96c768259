//! The chain of escalation: which model is asked first, and which ones next where the gate says
//! `again`.

use std::sync::Arc;

use super::Llm;
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
        let model = ChainModel { llm, kinds: Vec::new(), max_output_tokens, pictures: None };
        Self(vec![model])
    }

    /// Whether there is no model at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All models, in the order of escalation.
    pub fn iter(&self) -> impl Iterator<Item = &ChainModel> {
        self.0.iter()
    }

    /// The models that documents of this kind are read by.
    pub fn for_kind(&self, kind: &str) -> Vec<ChainModel> {
        let asked =
            |rung: &&ChainModel| rung.kinds.is_empty() || rung.kinds.iter().any(|it| it == kind);
        self.0.iter().filter(asked).cloned().collect()
    }
}
