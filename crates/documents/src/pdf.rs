//! PDF files: opened with limits, salvaged if damaged, their text layers checked against the way
//! each page looks, their pages rendered; and the files that docmill writes.

mod attached_files;
pub mod attachments;
mod contested_digits;
mod contrast;
mod crossed_out;
mod cut_letters;
mod disputed_resources;
mod drawn_figures;
pub(crate) mod drawn_marks;
mod expansion;
mod form_fields;
mod glyph_cells;
mod glyph_collector;
pub(crate) mod glyph_proof;
mod glyph_shapes;
mod glyphless_font;
mod inline_images;
mod layers;
pub(crate) mod lines;
mod lookalike_letters;
mod number_glyphs;
mod overprint;
pub(crate) mod page_glyph;
mod paint_appearance;
mod paint_record;
pub(crate) mod pdf_file;
mod pdf_recovery;
pub(crate) mod render;
pub(crate) mod searchable_pdf;
mod standard_shapes;
pub(crate) mod text_layer_check;
mod undrawn_annotations;
mod uneven_numbers;
mod words;
