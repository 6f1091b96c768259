//! The labels of a kind, made when they are first asked for: they are tens of thousands, only the rules
//! reader asks, and most processes (commands, pages of the web, workers with a model) never do.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use toml::de::DeTable;

use super::LabelIndex;
use super::labels::LabelTable;
use super::problem::ProblemReport;
use super::role::RoleNames;
use super::source::KindSource;

/// A kind's own labels after those of the kinds it includes; a [`LabelIndex`] for whoever reads.
#[derive(Debug, Clone)]
pub struct KindLabels {
    made: OnceLock<LabelIndex>,
    own: KindSource,
    included: Vec<KindSource>,
    roles: RoleNames,
}

impl KindLabels {
    /// Labels of files that are known to be sound, to be made later.
    pub(super) fn of_sound_files(
        own: KindSource,
        included: Vec<KindSource>,
        roles: &RoleNames,
    ) -> Self {
        Self { made: OnceLock::new(), own, included, roles: roles.clone() }
    }

    /// Makes them at once, and says what is wrong with the file of its own. `knows` says which sections
    /// there may be.
    pub(super) fn check(
        self,
        table: &DeTable<'_>,
        knows: impl Fn(&str) -> bool,
        report: &mut ProblemReport<'_>,
    ) -> Self {
        let mut own = LabelTable::default();
        own.add_file(table, knows, report);
        Self { made: OnceLock::from(self.index_with(Arc::new(own))), ..self }
    }

    /// `own` behind the files that are included, which are shared.
    fn index_with(&self, own: Arc<LabelTable>) -> LabelIndex {
        let included = self.included.iter().map(|other| Arc::clone(other.own_labels()));
        LabelIndex::of_files(included.chain([own]).collect(), self.roles.clone())
    }
}

impl Deref for KindLabels {
    type Target = LabelIndex;

    fn deref(&self) -> &LabelIndex {
        self.made.get_or_init(|| self.index_with(Arc::clone(self.own.own_labels())))
    }
}
