//! Charts over hours, drawn on the server: an SVG picture without script or style of its own, its legend,
//! and its ends in words. Screen readers get the summary; the figures are in a table beside it.

use maud::{Markup, html};
use time::OffsetDateTime;
use time::macros::format_description;

/// Units of a picture from left to right; it is stretched to the width of its frame.
const WIDTH: usize = 1_000;
/// Units from top to bottom.
const HEIGHT: f64 = 100.0;

/// One series of values, one for each hour; `None`: nothing is known of that hour.
pub(super) struct ChartSeries {
    /// Its name in the legend.
    pub(super) name: String,
    /// Its colour, as `data-tone` of the style sheet.
    pub(super) tone: &'static str,
    /// The values, oldest first.
    pub(super) values: Vec<Option<f64>>,
}

/// How series share a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChartForm {
    /// Filled, one on top of the other.
    Stacked,
    /// Lines over the same ground.
    Lines,
}

/// A chart.
pub(super) struct HourChart {
    /// Its heading.
    pub(super) title: &'static str,
    /// Its content in figures, for readers of the page's text.
    pub(super) summary: String,
    /// How the series share it.
    pub(super) form: ChartForm,
    /// The value at the top; `None`: the highest there is.
    pub(super) top: Option<f64>,
    /// The series, for stacked ones the lowest first.
    pub(super) series: Vec<ChartSeries>,
}

impl HourChart {
    /// The chart over hours that begin at `first` and end with that of `last`.
    pub(super) fn draw(&self, first: OffsetDateTime, last: OffsetDateTime) -> Markup {
        let top = self.top.unwrap_or_else(|| self.highest()).max(f64::MIN_POSITIVE);
        html! {
            figure.chart {
                figcaption { strong { (self.title) } " " span.hint { (self.summary) } }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
                    aria-label={ (self.title) ": " (self.summary) } {
                    @for (series, path) in self.series.iter().zip(self.paths(top)) {
                        @match self.form {
                            ChartForm::Stacked => path data-tone=(series.tone) d=(path) fill="currentColor" {},
                            ChartForm::Lines => path data-tone=(series.tone) d=(path) fill="none" stroke="currentColor"
                                stroke-width="2" vector-effect="non-scaling-stroke" {},
                        }
                    }
                }
                p.axis { (hour_name(first)) span { (hour_name(last)) } }
                @if self.series.len() > 1 {
                    p.hint { @for series in &self.series {
                        span data-tone=(series.tone) aria-hidden="true" { "■ " } (series.name) "  "
                    } }
                }
            }
        }
    }

    fn paths(&self, top: f64) -> Vec<String> {
        match self.form {
            ChartForm::Lines => {
                self.series.iter().map(|series| line_path(&series.values, top)).collect()
            }
            ChartForm::Stacked => {
                let mut below = vec![0.0; self.hours()];
                let mut paths = Vec::new();
                for series in &self.series {
                    let above = add_values(&below, &series.values);
                    paths.push(area_path(&below, &above, top));
                    below = above;
                }
                paths
            }
        }
    }

    fn hours(&self) -> usize {
        self.series.first().map_or(0, |series| series.values.len())
    }

    /// The highest value of a line, or the highest pile.
    fn highest(&self) -> f64 {
        match self.form {
            ChartForm::Lines => {
                let values = self.series.iter().flat_map(|series| series.values.iter().flatten());
                values.copied().fold(0.0, f64::max)
            }
            ChartForm::Stacked => {
                let mut piles = vec![0.0; self.hours()];
                for series in &self.series {
                    piles = add_values(&piles, &series.values);
                }
                piles.into_iter().fold(0.0, f64::max)
            }
        }
    }
}

/// An hour as an axis names it, in UTC.
pub(super) fn hour_name(hour: OffsetDateTime) -> String {
    let form = format_description!("[month]-[day] [hour]:[minute]");
    hour.to_offset(time::UtcOffset::UTC).format(form).unwrap_or_default()
}

fn add_values(below: &[f64], values: &[Option<f64>]) -> Vec<f64> {
    below.iter().zip(values).map(|(below, value)| below + value.unwrap_or(0.0)).collect()
}

/// Where an hour begins, in units from the left.
fn left_of(place: usize, hours: usize) -> usize {
    place * WIDTH / hours.max(1)
}

/// A value in units from the top.
fn depth_of(value: f64, top: f64) -> f64 {
    HEIGHT * (1.0 - (value / top).clamp(0.0, 1.0))
}

/// Steps along the values; it is interrupted where there is none.
fn line_path(values: &[Option<f64>], top: f64) -> String {
    let (mut path, mut runs) = (String::new(), false);
    for (place, value) in values.iter().enumerate() {
        let Some(value) = value else {
            runs = false;
            continue;
        };
        let (left, right) = (left_of(place, values.len()), left_of(place + 1, values.len()));
        let depth = depth_of(*value, top);
        path.push_str(&match runs {
            true => format!("V{depth:.1}H{right}"),
            false => format!("M{left} {depth:.1}H{right}"),
        });
        runs = true;
    }
    path
}

/// The area between two rows of steps.
fn area_path(below: &[f64], above: &[f64], top: f64) -> String {
    let mut path = format!("M0 {HEIGHT:.1}");
    for (place, value) in above.iter().enumerate() {
        let right = left_of(place + 1, above.len());
        path.push_str(&format!("V{:.1}H{right}", depth_of(*value, top)));
    }
    for (place, value) in below.iter().enumerate().rev() {
        let left = left_of(place, below.len());
        path.push_str(&format!("V{:.1}H{left}", depth_of(*value, top)));
    }
    path.push('Z');
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    fn series(values: &[Option<f64>]) -> ChartSeries {
        ChartSeries { name: "x".to_owned(), tone: "good", values: values.to_vec() }
    }

    fn chart(form: ChartForm, series: Vec<ChartSeries>) -> HourChart {
        HourChart { title: "t", summary: "s <b>".to_owned(), form, top: None, series }
    }

    #[test]
    fn a_line_is_interrupted_where_nothing_is_known_and_an_hour_alone_is_seen() {
        let gap = [Some(2.0), Some(1.0), None, Some(2.0)];
        assert_eq!(line_path(&gap, 2.0), "M0 0.0H250V50.0H500M750 0.0H1000");
        assert_eq!(line_path(&[None, None], 2.0), "");
    }

    #[test]
    fn stacked_areas_lie_on_each_other_and_the_highest_pile_reaches_the_top() {
        let two = chart(
            ChartForm::Stacked,
            vec![series(&[Some(1.0), Some(3.0)]), series(&[Some(3.0), None])],
        );
        assert!((two.highest() - 4.0).abs() < f64::EPSILON);
        assert_eq!(
            two.paths(4.0),
            [
                "M0 100.0V75.0H500V25.0H1000V100.0H500V100.0H0Z",
                "M0 100.0V0.0H500V25.0H1000V25.0H500V75.0H0Z"
            ]
        );
    }

    #[test]
    fn a_picture_says_its_figures_in_words_and_holds_no_markup_of_others() {
        let hour = datetime!(2026-11-28 09:00 UTC);
        let empty = chart(ChartForm::Lines, vec![series(&[])]).draw(hour, hour).into_string();
        assert!(empty.contains("aria-label=\"t: s &lt;b&gt;\""), "{empty}");
        assert!(empty.contains("11-28 09:00") && !empty.contains("style="), "{empty}");
    }
}
