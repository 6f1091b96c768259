//! Forms (PDF 32000-1 §12.7): whether a PDF has text fields, as olmOCR's filter defines it (fields of
//! the type `Tx`; checkboxes and signatures alone do not count); whether its pages are XFA's; and
//! values that viewers draw because the file asks them to (`NeedAppearances`) and has no drawing.
//!
//! Not promised: the font of such a value, nor its exact place within its field.

use std::collections::HashSet;

use hayro::hayro_interpret::TransformExt as _;
use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::hayro_syntax::object::{
    Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, Rect as PdfRect, String as PdfString,
};
use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro::kurbo::{Affine, Point, Rect, Vec2};

use crate::pdf::attachments::full_name;
use crate::pdf::page_glyph::PageGlyph;

/// Fields of a form that are searched.
const MAX_FIELDS: usize = 100_000;

/// Characters of a field's value that are shown.
const MAX_VALUE_CHARS: usize = 2_000;
/// Parents that a field takes its type and value from.
const MAX_FIELD_DEPTH: usize = 16;
/// Flags of an annotation that is not shown: hidden, and not to be viewed.
const HIDDEN_FLAGS: i32 = 0b10_0010;
/// Points, where a field leaves its size of letters to the viewer.
const USUAL_SIZE: f64 = 10.0;
/// Points between the border of a field and its value.
const FIELD_MARGIN: f64 = 2.0;

fn form_of(pdf: &Pdf) -> Option<Dict<'_>> {
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id())?;
    catalog.get::<Dict<'_>>(b"AcroForm")
}

/// Whether its pages are made by a form program alone: dynamic XFA, whose only page in the file asks
/// for another viewer.
pub(crate) fn is_dynamic_xfa(pdf: &Pdf) -> bool {
    let Some(form) = form_of(pdf).filter(|form| form.contains_key(b"XFA")) else { return false };
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let needs = catalog.and_then(|catalog| catalog.get::<bool>(b"NeedsRendering"));
    needs == Some(true) && children(&form, b"Fields").is_empty()
}

/// Adds the glyphs of values that a page shows in a viewer and does not draw itself. A value that is
/// not the one its field draws takes the drawing's place, and is not proven.
pub(crate) fn add_unpainted_values(pdf: &Pdf, page: &PdfPage<'_>, glyphs: &mut Vec<PageGlyph>) {
    let needed = form_of(pdf).and_then(|form| form.get::<bool>(b"NeedAppearances"));
    let annotations = page.raw().get::<Array<'_>>(b"Annots").filter(|_| needed == Some(true));
    let Some(annotations) = annotations else { return };
    let upright = page.initial_transform(true).to_kurbo();
    for field in annotations.iter::<Dict<'_>>().take(MAX_FIELDS) {
        add_value(&field, upright, glyphs);
    }
}

/// Whether an annotation is not shown on a screen.
pub(crate) fn is_hidden(annotation: &Dict<'_>) -> bool {
    annotation.get::<i32>(b"F").is_some_and(|flags| flags & HIDDEN_FLAGS != 0)
}

/// Letters and digits of a text, in lower case.
fn letters_of<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let letters = texts.flat_map(str::chars).filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Hides the letters that a field draws, where they are not those of its value. Whether they are.
fn takes_place_of_drawing(text: &str, area: Rect, glyphs: &mut [PageGlyph]) -> bool {
    let drawn = glyphs.iter_mut().filter(|it| it.visible && area.contains(it.centre()));
    let mut drawn: Vec<&mut PageGlyph> = drawn.collect();
    let shown = letters_of(drawn.iter().map(|glyph| glyph.text.as_str()));
    // A field may draw its value in a form of its own: 1,320.00 for 1320.
    let value = letters_of(std::iter::once(text));
    if shown.starts_with(&value) && !value.is_empty() || shown == value {
        return false;
    }
    drawn.iter_mut().for_each(|glyph| glyph.visible = false);
    true
}

/// Adds the value of a visible text or choice field whose appearance shows another text or none.
fn add_value(field: &Dict<'_>, upright: Affine, glyphs: &mut Vec<PageGlyph>) {
    let kind = holder_of(field, b"FT").and_then(|holder| holder.get::<Name<'_>>(b"FT"));
    let is_choice = kind.as_ref().is_some_and(|kind| kind.as_ref() == b"Ch");
    let is_text = kind.is_some_and(|kind| kind.as_ref() == b"Tx");
    if is_hidden(field) || !is_text && !is_choice {
        return;
    }
    let Some(area) = field.get::<PdfRect>(b"Rect") else { return };
    let Some(text) = inherited_text(field, b"V") else { return };
    let corners = [Point::new(area.x0, area.y0), Point::new(area.x1, area.y1)];
    let [one, other] = corners.map(|corner| upright * corner);
    let is_drawn = field.contains_key(b"AP");
    if !takes_place_of_drawing(&text, Rect::from_points(one, other), glyphs) {
        return;
    }
    let before = glyphs.len();
    let stated = inherited_text(field, b"DA");
    let size = stated.and_then(|style| stated_size(&style)).unwrap_or(USUAL_SIZE);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let is_one = lines.clone().count() == 1;
    let middle = (area.y0 + area.y1) / 2.0 - size / 3.0;
    let mut y = if is_one { middle } else { area.y1 - FIELD_MARGIN - size };
    let mut left = MAX_VALUE_CHARS;
    for line in lines {
        let mut x = area.x0 + FIELD_MARGIN;
        for c in line.chars().take(left) {
            left -= 1;
            // Half an em, the width of a digit.
            let advance = Vec2::new(size / 2.0, 0.0);
            if !c.is_whitespace() {
                glyphs.push(glyph_at(c, Point::new(x, y), advance, upright));
            }
            x += advance.x;
        }
        y -= size * 1.2;
    }
    // A choice field may display another text than its value.
    let added = glyphs.iter_mut().skip(before).filter(|_| is_drawn || is_choice);
    added.for_each(|glyph| glyph.unproven = true);
}

/// A black letter, of half an em.
pub(crate) fn glyph_at(c: char, at: Point, advance: Vec2, upright: Affine) -> PageGlyph {
    let (start, end) = (upright * at, upright * (at + advance));
    let em = (end - start) * 2.0;
    PageGlyph {
        text: c.to_string().into(),
        origin: start,
        advance: end - start,
        em,
        size: em.length(),
        visible: true,
        drawn: true,
        ink: 0,
        doubtful: false,
        unproven: false,
        contested: false,
    }
}

/// The size in an appearance string: `/Helv 9 Tf`.
pub(crate) fn stated_size(style: &str) -> Option<f64> {
    let words: Vec<&str> = style.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "Tf")?;
    let size: f64 = words.get(at.checked_sub(1)?)?.parse().ok()?;
    (1.0..=200.0).contains(&size).then_some(size)
}

/// A field, or its nearest parent, that has a key.
fn holder_of<'a>(field: &Dict<'a>, key: &[u8]) -> Option<Dict<'a>> {
    let mut at = field.clone();
    for _ in 0..MAX_FIELD_DEPTH {
        if at.contains_key(key) {
            return Some(at);
        }
        at = at.get::<Dict<'a>>(b"Parent")?;
    }
    None
}

/// A string of a field or its nearest parent, decoded.
fn inherited_text(field: &Dict<'_>, key: &[u8]) -> Option<String> {
    let text = holder_of(field, key)?.get::<PdfString<'_>>(key)?;
    Some(full_name(text.as_bytes()))
}

/// Whether somebody is to type into it.
pub(crate) fn has_text_fields(pdf: &Pdf) -> bool {
    let Some(form) = form_of(pdf) else { return false };
    let (mut open, mut seen) = (children(&form, b"Fields"), HashSet::new());
    while let Some(field) = open.pop() {
        if !seen.insert(field) || seen.len() > MAX_FIELDS {
            continue;
        }
        let Some(field) = pdf.xref().get::<Dict<'_>>(field) else { continue };
        if field.get::<Name<'_>>(b"FT").is_some_and(|kind| kind.as_ref() == b"Tx") {
            return true;
        }
        open.extend(children(&field, b"Kids"));
    }
    false
}

/// Objects that a list of fields refers to.
fn children(of: &Dict<'_>, key: &[u8]) -> Vec<ObjectIdentifier> {
    let list = of.get::<Array<'_>>(key);
    let items = list.iter().flat_map(|list| list.raw_iter());
    let references = items.filter_map(|item: MaybeRef<Object<'_>>| match item {
        MaybeRef::Ref(to) => Some(to.into()),
        MaybeRef::NotRef(_) => None,
    });
    references.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A PDF of these objects.
    pub(crate) fn pdf(objects: &[&str]) -> Pdf {
        let mut bytes = b"%PDF-1.7\n".to_vec();
        let mut places = Vec::new();
        for (index, object) in objects.iter().enumerate() {
            places.push(bytes.len());
            bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", index + 1).into_bytes());
        }
        let at = bytes.len();
        bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).into_bytes());
        for place in &places {
            bytes.extend(format!("{place:010} 00000 n \n").into_bytes());
        }
        let size = places.len() + 1;
        let end = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{at}\n%%EOF\n");
        bytes.extend(end.into_bytes());
        Pdf::new(bytes).unwrap()
    }

    #[test]
    fn a_value_without_a_drawing_is_shown_where_the_file_asks_viewers_to_draw_it() {
        let catalog = "<< /Type /Catalog /Pages 2 0 R /AcroForm 5 0 R >>";
        let pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
        let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Annots [4 0 R] >>";
        let field = "/Subtype /Widget /Rect [10 40 110 60] /DA (/Helv 10 Tf)";
        let asked = "<< /Fields [4 0 R] /NeedAppearances true >>";
        for (name, entries, form, shown) in [
            ("a value", "/FT /Tx /V (4 Eur)", asked, "4Eur"),
            ("UTF-16", "/FT /Tx /V <FEFF00FC>", asked, "ü"),
            ("a value of the parent", "/Parent 6 0 R", asked, "9"),
            ("a hidden one", "/FT /Tx /V (4) /F 2", asked, ""),
            ("one that is drawn otherwise", "/FT /Tx /V (4) /AP << >>", asked, "4"),
            ("a choice", "/FT /Ch /V (4)", asked, "4"),
            ("a button", "/FT /Btn /V (4)", asked, ""),
            ("nobody asked", "/FT /Tx /V (4)", "<< /Fields [4 0 R] >>", ""),
        ] {
            let field = format!("<< {field} {entries} >>");
            let file = pdf(&[catalog, pages, page, &field, form, "<< /FT /Tx /V (9) >>"]);
            let mut glyphs = Vec::new();
            add_unpainted_values(&file, &file.pages()[0], &mut glyphs);
            let text: String = glyphs.iter().map(|glyph| glyph.text.as_str()).collect();
            assert_eq!(text, shown, "{name}");
            let within = |glyph: &PageGlyph| {
                (10.0..110.0).contains(&glyph.origin.x) && (40.0..60.0).contains(&glyph.origin.y)
            };
            assert!(glyphs.iter().all(within), "{name}: {glyphs:?}");
        }
    }

    #[test]
    fn a_form_whose_pages_only_its_program_makes_is_dynamic() {
        let pages = "<< /Type /Pages /Kids [] /Count 0 >>";
        for (catalog, form, dynamic) in [
            ("/NeedsRendering true", "/XFA 4 0 R /Fields []", true),
            ("/NeedsRendering true", "/Fields []", false),
            ("", "/XFA 4 0 R /Fields []", false),
            ("/NeedsRendering true", "/XFA 4 0 R /Fields [4 0 R]", false),
        ] {
            let catalog = format!("<< /Type /Catalog /Pages 2 0 R /AcroForm 3 0 R {catalog} >>");
            let file = pdf(&[&catalog, pages, &format!("<< {form} >>"), "<< >>"]);
            assert_eq!(is_dynamic_xfa(&file), dynamic, "{catalog} {form}");
        }
    }

    #[test]
    fn a_form_has_a_text_field_at_any_depth_and_cyclic_fields_end() {
        let (root, pages) = (
            "<< /Type /Catalog /Pages 2 0 R /AcroForm 3 0 R >>",
            "<< /Type /Pages /Kids [] /Count 0 >>",
        );
        let field = "<< /Fields [4 0 R] >>";
        for (objects, expected) in [
            (vec![root, pages, field, "<< /FT /Tx /T (name) >>"], true),
            (vec![root, pages, field, "<< /Kids [5 0 R] >>", "<< /FT /Tx >>"], true),
            (vec![root, pages, field, "<< /FT /Btn >>"], false),
            (vec![root, pages, field, "<< /FT /Sig >>"], false),
            (vec![root, pages, field, "<< /Kids [4 0 R 5 0 R] >>", "<< /Kids [4 0 R] >>"], false),
            (vec![root, pages, "<< /Fields [] >>"], false),
            (vec![root, pages, "<< /Fields 9 0 R >>"], false),
            (vec!["<< /Type /Catalog /Pages 2 0 R >>", pages], false),
        ] {
            assert_eq!(has_text_fields(&pdf(&objects)), expected, "{objects:?}");
        }
    }
}
