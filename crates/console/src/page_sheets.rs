//! Pages of a document as pictures, with the places of lines and values marked on them.
//!
//! Marks are shapes laid over the picture, in the transcript's own units, so that they fit at any
//! size. A doubtful value is also shown enlarged beside its input, cut out of the same picture by
//! the browser: for browsers without script, or with a small screen.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::state::ConsoleState;
use docmill_core::model::{BoundingBox, PageText};

/// A crop is at least so much of the page's width.
const CROP_WIDTH: f32 = 0.45;
/// Air around a mark: a share of its height.
const MARK_AIR: f32 = 0.15;
/// Above and below a value at least so much of the page's height is shown.
const CROP_MARGIN: f32 = 0.012;

/// A page as it is shown beside a form.
#[derive(Debug, Clone)]
pub(super) struct PageSheet {
    /// Number of the page, starting at 1.
    pub(super) number: u32,
    /// Width in the unit of the boxes.
    pub(super) width: f32,
    /// Height in the same unit.
    pub(super) height: f32,
    /// Its text, cut to the length shown.
    pub(super) text: String,
}

impl PageSheet {
    /// The sheet of this page, with this text.
    pub(super) fn new(page: &PageText, text: String) -> Self {
        Self { number: page.number, width: page.width, height: page.height, text }
    }

    /// Whether anything can be laid over it.
    fn has_size(&self) -> bool {
        self.width.is_finite() && self.height.is_finite() && self.width > 0.0 && self.height > 0.0
    }
}

/// Where the value of a field was found.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct FieldPlace {
    /// Name of the field, e.g. `line_items[2].amount`.
    pub(super) field: String,
    /// Number of the page, starting at 1.
    pub(super) page: u32,
    /// The smallest box around it.
    #[serde(rename = "box", default)]
    bounding_box: Option<BoundingBox>,
}

/// Where the values of an ingestion's data were found.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldPlaces(Vec<FieldPlace>);

impl FieldPlaces {
    /// The stored places; invalid ones are left out.
    pub(super) fn read(grounded: Option<Value>) -> Self {
        let Some(Value::Array(places)) = grounded else { return Self::default() };
        Self(places.into_iter().filter_map(|place| serde_json::from_value(place).ok()).collect())
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &FieldPlace> {
        self.0.iter()
    }

    /// The place of a field, and its number among all.
    fn find(&self, field: &str) -> Option<(usize, &FieldPlace)> {
        self.0.iter().enumerate().find(|(_, place)| place.field == field)
    }

    /// Those with a box on this page, and their numbers among all.
    fn boxes_on(&self, page: u32) -> impl Iterator<Item = (usize, &FieldPlace, BoundingBox)> {
        let on_page = self.0.iter().enumerate().filter(move |(_, place)| place.page == page);
        on_page.filter_map(|(at, place)| Some((at, place, place.bounding_box?)))
    }
}

/// The name of a value's mark in its page.
pub(super) fn mark_id(at: usize) -> String {
    format!("mark-{at}")
}

/// The pages of one ingestion with the places of its values.
pub(super) struct PicturedPages {
    /// The path of its pictures; `None` if none are drawn.
    base: Option<String>,
    sheets: Vec<PageSheet>,
    places: FieldPlaces,
}

impl PicturedPages {
    /// Pages of this ingestion; without one, or without drawing, they have no pictures.
    pub(super) fn new(
        state: &ConsoleState,
        ingestion: Option<Uuid>,
        sheets: Vec<PageSheet>,
        places: FieldPlaces,
    ) -> Self {
        let base = ingestion.filter(|_| state.drawer().is_some());
        let base = base.map(|id| state.link(&format!("/ingestions/{id}/pages")));
        Self { base, sheets, places }
    }

    /// No pages at all.
    #[cfg(test)]
    pub(super) fn unseen() -> Self {
        Self { base: None, sheets: Vec::new(), places: FieldPlaces::default() }
    }

    /// The values that are marked on this page: their names, marks and boxes.
    pub(super) fn marked_values(
        &self,
        page: u32,
    ) -> impl Iterator<Item = (&str, String, BoundingBox)> {
        let boxes = self.places.boxes_on(page);
        boxes.map(|(at, place, area)| (place.field.as_str(), mark_id(at), area))
    }

    /// A thumbnail of the page. The script requests it after the page in view; otherwise sixty
    /// pages would be rendered before that one.
    pub(super) fn small_picture(&self, number: u32) -> Markup {
        let path = self.base.as_ref().map(|base| format!("{base}/{number}/picture"));
        html! { @if let Some(path) = path { img data-src=(path) alt=""; } }
    }

    /// The pages.
    pub(super) fn sheets(&self) -> &[PageSheet] {
        &self.sheets
    }

    fn sheet(&self, number: u32) -> Option<&PageSheet> {
        self.sheets.iter().find(|sheet| sheet.number == number && sheet.has_size())
    }

    /// The page on which a field's value was found, in words; a link, if it is marked there.
    pub(super) fn describe_place(&self, field: &str) -> Markup {
        let Some((_, place)) = self.places.find(field) else { return Markup::default() };
        let words = format!("found on page {}", place.page);
        html! {
            span.hint { " · "
                @match self.mark_of(field) {
                    Some(mark) => a href={ "#" (mark) } { (words) },
                    None => (words),
                }
            }
        }
    }

    /// The same in a few characters.
    pub(super) fn short_place(&self, field: &str) -> Markup {
        let Some((_, place)) = self.places.find(field) else { return html! { span.place {} } };
        let words = format!("found on page {}", place.page);
        html! {
            span.place {
                @match self.mark_of(field) {
                    Some(mark) => a href={ "#" (mark) } aria-label=(words) { "p. " (place.page) },
                    None => span title=(words) { "p. " (place.page) },
                }
            }
        }
    }

    /// The mark of a field's value, if its page is shown.
    pub(super) fn mark_of(&self, field: &str) -> Option<String> {
        let (at, place) = self.places.find(field)?;
        let is_shown = place.bounding_box.is_some() && self.base.is_some();
        (is_shown && self.sheet(place.page).is_some()).then(|| mark_id(at))
    }

    /// Whether any of these fields is marked on this page.
    pub(super) fn has_mark_on(&self, page: u32, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.places.boxes_on(page).any(|(_, place, _)| is_wanted(&place.field))
    }

    /// A field's value and its surroundings, cut out of the picture of its page.
    pub(super) fn crop(&self, field: &str) -> Markup {
        let found = self.places.find(field);
        let found =
            found.and_then(|(_, place)| Some((place.bounding_box?, self.sheet(place.page)?)));
        let (Some((marked, sheet)), Some(base)) = (found, &self.base) else {
            return Markup::default();
        };
        let shown = crop_around(marked, sheet);
        html! {
            svg.crop viewBox=(view_text(shown)) role="img"
                aria-label={ "Cut out of page " (sheet.number) ": where this was read" } {
                image href={ (base) "/" (sheet.number) "/picture" } width=(units(sheet.width))
                    height=(units(sheet.height)) preserveAspectRatio="none" {}
                (mark_shape(marked, None, "mark"))
            }
        }
    }

    /// The picture of a page with the places of its values; empty without a picture. `is_doubtful`:
    /// of a field.
    pub(super) fn picture(&self, number: u32, is_doubtful: impl Fn(&str) -> bool) -> Markup {
        let marks = html! {
            @for (at, place, bounding_box) in self.places.boxes_on(number) {
                @let class = if is_doubtful(&place.field) { "mark doubtful" } else { "mark" };
                (mark_shape(bounding_box, Some(&mark_id(at)), class))
            }
        };
        self.marked_picture(number, &marks)
    }

    /// The picture of a page with these marks; empty without a picture.
    pub(super) fn marked_picture(&self, number: u32, marks: &Markup) -> Markup {
        let (Some(sheet), Some(base)) = (self.sheet(number), &self.base) else {
            return Markup::default();
        };
        let source = format!("{base}/{number}/picture");
        html! {
            figure.sheet data-words={ (base) "/" (number) "/words" } {
                img src=(source) width=(sheet.width.round()) height=(sheet.height.round())
                    loading="lazy" alt={ "Page " (number) " as it looks" };
                svg viewBox={ "0 0 " (units(sheet.width)) " " (units(sheet.height)) }
                    preserveAspectRatio="none" aria-hidden="true" { (marks) }
                // The picture's own address gives the reason.
                p.unseen hidden { a href=(source) { "Page " (number) " cannot be shown: why?" } }
            }
        }
    }
}

/// Hundredths of a unit are more than anybody sees.
fn units(value: f32) -> String {
    format!("{value:.2}")
}

fn view_text(area: BoundingBox) -> String {
    [area.x, area.y, area.w, area.h].map(units).join(" ")
}

/// Around a place, with some air: a stroke through the letters would hide them.
pub(super) fn mark_shape(place: BoundingBox, id: Option<&str>, class: &str) -> Markup {
    let air = place.h * MARK_AIR;
    let (x, y) = (place.x - air, place.y - air);
    html! {
        rect id=[id] class=(class) x=(units(x)) y=(units(y)) width=(units(place.w + 2.0 * air))
            height=(units(place.h + 2.0 * air)) {}
    }
}

/// A value with some of the page around it, within the page.
fn crop_around(value: BoundingBox, sheet: &PageSheet) -> BoundingBox {
    let w = (value.w * 1.5).max(sheet.width * CROP_WIDTH).min(sheet.width);
    let margin = value.h.max(sheet.height * CROP_MARGIN);
    let h = (value.h + 2.0 * margin).min(sheet.height);
    let x = (value.x + value.w / 2.0 - w / 2.0).min(sheet.width - w).max(0.0);
    let y = (value.y + value.h / 2.0 - h / 2.0).min(sheet.height - h).max(0.0);
    BoundingBox { x, y, w, h }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sheet() -> PageSheet {
        PageSheet { number: 2, width: 600.0, height: 800.0, text: String::new() }
    }

    fn pages(base: Option<&str>) -> PicturedPages {
        let places = FieldPlaces::read(Some(json!([
            { "field": "total", "page": 2, "confidence": 1.0,
              "box": { "x": 500.0, "y": 700.0, "w": 60.0, "h": 10.0 } },
            { "field": "number", "page": 2, "confidence": 0.5 },
            { "field": "date", "page": 9, "box": { "x": 1.0, "y": 1.0, "w": 1.0, "h": 1.0 } },
            { "page": 1 },
        ])));
        PicturedPages { base: base.map(str::to_owned), sheets: vec![sheet()], places }
    }

    #[test]
    fn a_crop_holds_the_value_and_stays_on_the_page() {
        for (x, y, w, h) in [
            (500.0, 700.0, 60.0, 10.0),
            (0.0, 0.0, 5.0, 5.0),
            (590.0, 795.0, 10.0, 5.0),
            (0.0, 0.0, 600.0, 800.0),
            (100.0, 300.0, 400.0, 90.0),
        ] {
            let crop = crop_around(BoundingBox { x, y, w, h }, &sheet());
            let inside =
                crop.x >= 0.0 && crop.y >= 0.0 && crop.right() <= 600.0 && crop.bottom() <= 800.0;
            assert!(inside, "{crop:?}");
            let holds =
                crop.x <= x && crop.y <= y && crop.right() >= x + w && crop.bottom() >= y + h;
            assert!(holds, "{crop:?} of {x} {y} {w} {h}");
            assert!(crop.w >= 270.0, "too narrow to be read: {crop:?}");
        }
    }

    #[test]
    fn a_small_picture_is_asked_for_by_the_script_alone() {
        let small = pages(Some("/pages")).small_picture(2).into_string();
        assert_eq!(small, "<img data-src=\"/pages/2/picture\" alt=\"\">");
        assert_eq!(pages(None).small_picture(2).into_string(), "");
    }

    #[test]
    fn only_what_has_a_place_on_a_page_that_is_shown_is_marked() {
        let shown = pages(Some("/ingestions/x/pages"));
        assert_eq!(shown.mark_of("total"), Some("mark-0".to_owned()));
        let crop = shown.crop("total").into_string();
        assert!(crop.contains("href=\"/ingestions/x/pages/2/picture\""), "{crop}");
        for field in ["number", "date", "unknown"] {
            assert_eq!(shown.mark_of(field), None, "{field}");
            assert_eq!(shown.crop(field).into_string(), "", "{field}");
        }
        let told = shown.describe_place("number").into_string();
        assert!(told.contains("found on page 2") && !told.contains("href"), "{told}");
        let none = pages(None);
        assert_eq!(
            (none.mark_of("total"), none.crop("total").into_string()),
            (None, String::new())
        );
        assert_eq!(none.picture(2, |_| true).into_string(), "");
    }
}
