//! The labels of a kind, made when they are first asked for: they are tens of thousands, only the rules
//! reader asks, and most processes (commands, pages of the web, workers with a model) never do.

use std::ops::Deref;
use std::sync::OnceLock;

use toml::de::DeTable;

use super::LabelIndex;
use super::problem::ProblemReport;
use super::source::KindSource;

/// A kind's own labels after those of the kinds it includes; a [`LabelIndex`] for whoever reads.
#[derive(Debug, Clone)]
pub struct KindLabels {
    made: OnceLock<LabelIndex>,
    own: KindSource,
    included: Vec<KindSource>,
}

impl KindLabels {
    /// Labels of files that are known to be sound, to be made later.
    pub(super) fn of_sound_files(own: KindSource, included: Vec<KindSource>) -> Self {
        Self { made: OnceLock::new(), own, included }
    }

    /// Makes them at once, and says what is wrong with the file of its own. `knows` says which sections
    /// there may be.
    pub(super) fn check(
        self,
        table: &DeTable<'_>,
        knows: impl Fn(&str) -> bool,
        report: &mut ProblemReport<'_>,
    ) -> Self {
        let mut labels = self.included_labels();
        labels.add_file(table, knows, report);
        Self { made: OnceLock::from(labels), ..self }
    }

    fn included_labels(&self) -> LabelIndex {
        let mut labels = LabelIndex::default();
        self.included.iter().for_each(|other| labels.include(other.own_labels()));
        labels
    }

    fn make(&self) -> LabelIndex {
        let mut labels = self.included_labels();
        labels.include(self.own.own_labels());
        labels
    }
}

impl Deref for KindLabels {
    type Target = LabelIndex;

    fn deref(&self) -> &LabelIndex {
        match self.made.get() {
            Some(made) => made,
            None if self.included.is_empty() => self.own.own_labels(),
            None => self.made.get_or_init(|| self.make()),
        }
    }
}
