//! The schemas of kinds against the models of the configuration: by the published limits, and by asking.

use docmill_core::config::{LlmConfig, LlmProvider, StructuredOutput};
use docmill_core::fault;
use docmill_extract::probe::probe_prompt;
use docmill_extract::schema::ReplySchema;
use docmill_gate::kinds::{Kind, KindSet};
use docmill_llm::Llm;
use docmill_llm::schema::limits::find_exceeded_by;
use docmill_operations::doctor::probe::{self, SchemaProbe};
use docmill_operations::doctor::{DoctorFinding, findings_or_unusable};
use docmill_pipeline::CostTracker;

use super::{App, models};

impl App {
    /// The schemas that exceed a published limit of a configured model's vendor, a line each.
    ///
    /// # Errors
    /// The schema of a kind is not a valid one.
    pub(super) fn list_exceeded_limits(&self, kinds: &KindSet) -> fault::Result<Vec<String>> {
        let mut lines = Vec::new();
        for (config, names) in configured_models(&self.config.llm) {
            for kind in kinds_of(kinds, &names) {
                let form = ReplySchema::for_reading(kind, config.takes_pictures)?;
                for limit in find_exceeded_by(&config, &form.schema) {
                    lines.push(format!("{}, kind {}: {limit}", config.model, kind.name));
                }
            }
        }
        Ok(lines)
    }

    /// Finds schemas that exceed a published limit of a configured model's vendor.
    pub(super) fn check_schemas(&self) -> DoctorFinding {
        const CHECK: &str = "provider.schema";
        let lines = self.load_kinds().and_then(|kinds| Ok(self.list_exceeded_limits(&kinds)?));
        match lines {
            Ok(lines) if lines.is_empty() => {
                DoctorFinding::ok(CHECK, "no schema exceeds a published limit of its models")
            }
            Ok(lines) => DoctorFinding::warn(CHECK, lines.join("; "), EXCEEDED_ADVICE),
            Err(error) => DoctorFinding::unusable(CHECK, &error),
        }
    }

    /// Sends every schema to every model that is asked for it, in one short call each.
    pub(super) async fn probe_models(&self) -> Vec<DoctorFinding> {
        findings_or_unusable("probe", self.probe_all().await)
    }

    async fn probe_all(&self) -> fault::Result<Vec<DoctorFinding>> {
        let kinds = self.load_kinds().map_err(|error| fault::Error::internal(error.to_string()))?;
        let governor = self.make_governor();
        let scheduler = models::start_scheduler(&self.config.llm, false)?;
        let mut findings = Vec::new();
        for (config, names) in configured_models(&self.config.llm) {
            let model = models::connect_model(&config, &governor).await?;
            let model = models::schedule_model(model, scheduler.as_ref());
            for kind in kinds_of(&kinds, &names) {
                for pictures in [false, true] {
                    if pictures <= config.takes_pictures {
                        let probe =
                            self.probe_schema(model.as_ref(), &config, kind, pictures).await?;
                        findings.push(probe::check(&probe, &self.config.cost.currency));
                    }
                }
            }
        }
        if findings.is_empty() {
            findings.push(DoctorFinding::ok("probe", "no model is configured"));
        }
        Ok(findings)
    }

    async fn probe_schema(
        &self,
        model: &dyn Llm,
        config: &LlmConfig,
        kind: &Kind,
        pictures: bool,
    ) -> fault::Result<SchemaProbe> {
        let prompt = probe_prompt(kind, pictures)?;
        let answer = model.complete(&prompt).await.map(|reply| reply.usage);
        let costs = CostTracker::new(self.config.cost.clone());
        let (provider, name) = (model.provider(), model.model());
        let form = if pictures { " with pictures" } else { "" };
        Ok(SchemaProbe {
            model: format!("{provider} {name}"),
            kind: format!("{}{form}", kind.name),
            has_schema: config.structured != StructuredOutput::Prompt,
            refused: model.refuses_schema(&prompt),
            cost: answer.as_ref().ok().and_then(|usage| costs.price_call(model, *usage)),
            answer,
        })
    }
}

/// The remedy for a schema beyond a limit.
pub(super) const EXCEEDED_ADVICE: &str = "replies are asked for by the prompt alone once the model refuses; set \
    `structured = \"prompt\"` for it, or make the schema smaller";

/// The settings of every model of the chain, and the kinds that it is asked about; none: all.
fn configured_models(first: &LlmConfig) -> Vec<(LlmConfig, Vec<String>)> {
    if first.provider == LlmProvider::None {
        return Vec::new();
    }
    let stronger = first.chain.iter().map(|rung| (rung.inherit_from(first), rung.kinds.clone()));
    std::iter::once((first.clone(), Vec::new())).chain(stronger).collect()
}

fn kinds_of<'a>(kinds: &'a KindSet, names: &'a [String]) -> impl Iterator<Item = &'a Kind> {
    kinds.iter().filter(move |kind| names.is_empty() || names.contains(&kind.name))
}
