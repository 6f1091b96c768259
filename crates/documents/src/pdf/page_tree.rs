//! Page counts stated by the page tree (ISO 32000-1 §7.7.3.2). Viewers show as many pages as it
//! states, the interpreter all of them.

use hayro::hayro_interpret::hayro_syntax::Pdf;
use hayro::hayro_interpret::hayro_syntax::object::{Array, Dict, Number};

/// Depth of the tree.
const MAX_DEPTH: usize = 32;

/// Whether a subtree states fewer pages than it has, or is too deep to count.
pub(crate) fn hides_pages(pdf: &Pdf) -> bool {
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let tree = catalog.and_then(|catalog| catalog.get::<Dict<'_>>(b"Pages"));
    // A tree without pages was rebuilt by the parser from page objects.
    tree.is_some_and(|tree| count_pages(&tree, MAX_DEPTH).is_none())
}

/// The pages below a node; `None`: one of them is hidden.
fn count_pages(node: &Dict<'_>, depth: usize) -> Option<usize> {
    let Some(kids) = node.get::<Array<'_>>(b"Kids") else { return Some(1) };
    let depth = depth.checked_sub(1)?;
    let mut count: usize = 0;
    for kid in kids.iter::<Dict<'_>>() {
        count = count.saturating_add(count_pages(&kid, depth)?);
    }
    let stated = node.get::<Number>(b"Count").map(|stated| stated.as_i64().max(0));
    let is_shown = stated.is_none_or(|stated| usize::try_from(stated).is_ok_and(|it| it >= count));
    is_shown.then_some(count)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_tree_that_states_fewer_pages_than_it_has_hides_some() {
        let page = "<</Type/Page/MediaBox[0 0 9 9]>>";
        for (name, tree, expected) in [
            ("as many", format!("/Count 2/Kids[{page}{page}]"), false),
            ("no number", format!("/Kids[{page}{page}]"), false),
            ("more", format!("/Count 3/Kids[{page}{page}]"), false),
            ("fewer", format!("/Count 1/Kids[{page}{page}]"), true),
            ("fewer than none", format!("/Count -1/Kids[{page}]"), true),
            ("a part of none", format!("/Count 2/Kids[{page}<</Count 0/Kids[{page}]>>]"), true),
        ] {
            let objects = format!(
                "%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
                 2 0 obj\n<</Type/Pages{tree}>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF\n"
            );
            let pdf = Pdf::new(Arc::new(objects.into_bytes())).unwrap();
            assert_eq!(hides_pages(&pdf), expected, "{name}");
        }
    }
}
