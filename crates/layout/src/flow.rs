//! Lines to paragraphs, lists, captions and notes.

use super::block::{BlockContent, ListItem};
use super::frame::PlacedWord;
use super::lines::{FlowLine, LineMeasure};
use super::markers::{LineMarker, marker_of, may_be_bullet, starts_caption, starts_footnote};
use super::piece::join_words;

/// A block before it has its place among the headings of the document.
#[derive(Debug, Clone)]
pub(super) struct DraftBlock<'a> {
    pub(super) content: BlockContent,
    pub(super) words: Vec<PlacedWord<'a>>,
    /// Size of its letters.
    pub(super) em: f32,
    /// Number of its lines.
    pub(super) lines: usize,
    /// It is alone, short and does not end like a sentence.
    pub(super) stands_alone: bool,
}

/// Lines that are read as one, with the marker of the first.
struct LineGroup<'a> {
    lines: Vec<FlowLine<'a>>,
    marker: Option<LineMarker>,
    /// There is more white above than between lines.
    apart: bool,
}

/// Makes blocks of the lines of a region; `body` is the size of running text.
pub(super) fn read_lines(lines: Vec<FlowLine<'_>>, body: f32) -> Vec<DraftBlock<'_>> {
    let measure = LineMeasure::of_lines(&lines);
    let bullets = loose_bullets(&lines);
    let mut groups: Vec<LineGroup<'_>> = Vec::new();
    for (line, loose) in lines.into_iter().zip(bullets) {
        let marker = marker_of(&line.words).or(loose.then_some(LineMarker::Bullet));
        match groups.last_mut() {
            Some(group) if goes_on(group, &line, marker, &measure) => group.lines.push(line),
            last => {
                let apart = last.is_none_or(|group| is_apart(group, &line, &measure));
                groups.push(LineGroup { lines: vec![line], marker, apart });
            }
        }
    }
    join_groups(groups, &measure, body)
}

/// Lines that begin with a sign that may be a bullet as a picture shows it, where two begin with
/// the same one.
fn loose_bullets(lines: &[FlowLine<'_>]) -> Vec<bool> {
    let mut seen: Vec<(f32, usize)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| may_be_bullet(&line.words))
        .map(|(at, line)| (line.area.x, at))
        .collect();
    seen.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut found = vec![false; lines.len()];
    let em = lines.first().map_or(0.0, |line| line.em);
    for group in seen.chunk_by(|one, next| next.0 - one.0 < 0.4 * em) {
        if group.len() < 2 {
            continue;
        }
        for (_, at) in group {
            if let Some(found) = found.get_mut(*at) {
                *found = true;
            }
        }
    }
    found
}

fn is_apart(group: &LineGroup<'_>, line: &FlowLine<'_>, measure: &LineMeasure) -> bool {
    group.lines.last().is_some_and(|last| line.baseline - last.baseline > 1.25 * measure.pitch)
}

/// Whether a line belongs to what the lines above it say.
fn goes_on(
    group: &LineGroup<'_>,
    line: &FlowLine<'_>,
    marker: Option<LineMarker>,
    measure: &LineMeasure,
) -> bool {
    let Some(last) = group.lines.last() else { return false };
    let (low, high) = (last.em.min(line.em), last.em.max(line.em));
    let pitch = line.baseline - last.baseline;
    let usual = measure.pitch * (last.em / low).max(1.0);
    if high > 1.15 * low || pitch > 1.25 * usual.max(1.15 * low) || marker.is_some() {
        return false;
    }
    if starts_caption(&line.words) {
        return false;
    }
    let Some(first) = group.lines.first() else { return false };
    if group.marker.is_some() {
        // An entry goes on below its words; what begins left of its mark is none of it.
        let text = first.words.get(1).map_or(first.area.x, |word| word.area.x);
        return line.area.x > first.area.x + 0.3 * low || (line.area.x - text).abs() < 0.5 * low;
    }
    let width = measure.right - measure.left;
    let indented = line.area.x - measure.left > 0.8 * low && last.area.x - measure.left < 0.4 * low;
    let short = last.area.right() < measure.left + 0.85 * width;
    if indented && last.ends_sentence() {
        return false;
    }
    !(short
        && last.ends_sentence()
        && line.starts_upper()
        && width > 20.0 * low
        && pitch > 1.05 * usual)
}

/// Blocks of groups: entries that follow each other are one list.
fn join_groups<'a>(
    groups: Vec<LineGroup<'a>>,
    measure: &LineMeasure,
    body: f32,
) -> Vec<DraftBlock<'a>> {
    let mut blocks = Vec::new();
    let mut entries: Vec<LineGroup<'a>> = Vec::new();
    for group in groups {
        let is_entry = matches!(group.marker, Some(LineMarker::Bullet | LineMarker::Number));
        if !is_entry {
            close_list(&mut entries, &mut blocks, measure, body);
            blocks.push(block_of(group, measure, body));
            continue;
        }
        let away = entries.last().and_then(|entry| entry.lines.last()).is_some_and(|last| {
            group
                .lines
                .first()
                .is_some_and(|first| first.baseline - last.baseline > 2.5 * measure.pitch)
        });
        if away {
            close_list(&mut entries, &mut blocks, measure, body);
        }
        entries.push(group);
    }
    close_list(&mut entries, &mut blocks, measure, body);
    blocks
}

/// A number before a lone line is no list: a heading, a date, a note.
fn close_list<'a>(
    entries: &mut Vec<LineGroup<'a>>,
    blocks: &mut Vec<DraftBlock<'a>>,
    measure: &LineMeasure,
    body: f32,
) {
    let entries = std::mem::take(entries);
    let lone =
        entries.len() == 1 && entries.iter().all(|entry| entry.marker == Some(LineMarker::Number));
    let notes = !entries.is_empty()
        && entries.iter().flat_map(|entry| entry.lines.first()).all(|line| line.em < 0.88 * body);
    if lone || notes {
        blocks.extend(entries.into_iter().map(|entry| block_of(entry, measure, body)));
        return;
    }
    let lefts = entries.iter().filter_map(|entry| entry.lines.first()).map(|line| line.area.x);
    let outermost = lefts.fold(f32::INFINITY, f32::min);
    let mut items = Vec::new();
    let mut words = Vec::new();
    let (mut em, mut lines) = (0.0, 0);
    for entry in entries {
        let Some(first) = entry.lines.first() else { continue };
        em = first.em;
        lines += entry.lines.len();
        items.push(ListItem {
            marker: first.words.first().map_or_else(String::new, |word| word.text.to_owned()),
            text: entry_text(&entry.lines),
            depth: depth_of(first.area.x - outermost, first.em),
        });
        words.extend(entry.lines.into_iter().flat_map(|line| line.words));
    }
    if !items.is_empty() {
        let content = BlockContent::List { items };
        blocks.push(DraftBlock { content, words, em, lines, stands_alone: false });
    }
}

fn entry_text(lines: &[FlowLine<'_>]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let words = line.words.get(usize::from(at == 0)..).unwrap_or_default();
        texts.push(join_words(words));
    }
    texts.join("\n")
}

/// Entries are indented by about two letters for every level.
fn depth_of(indent: f32, em: f32) -> u8 {
    let steps = [0.9, 2.4, 4.2, 6.0];
    let deeper = steps.iter().take_while(|step| indent > **step * em).count();
    u8::try_from(deeper).unwrap_or(u8::MAX)
}

fn block_of<'a>(group: LineGroup<'a>, measure: &LineMeasure, body: f32) -> DraftBlock<'a> {
    let LineGroup { lines, marker, apart } = group;
    let texts: Vec<String> = lines.iter().map(FlowLine::text).collect();
    let text = texts.join("\n");
    let count = lines.len();
    let first = lines.first();
    let em = first.map_or(0.0, |line| line.em);
    let words_in_first = first.map_or(&[][..], |line| line.words.as_slice());
    let width = (measure.right - measure.left).max(1.0);
    let stands_alone = apart
        && count <= 2
        && words_in_first.len() <= 12
        && first
            .is_some_and(|line| line.starts_upper() && line.area.w < 0.8 * width.max(20.0 * em))
        && lines.last().is_some_and(|line| !line.ends_clause());
    let content = match marker {
        Some(LineMarker::Tick { checked }) => BlockContent::Checkbox { checked, text },
        _ if starts_caption(words_in_first) && count <= 4 => BlockContent::Caption { text },
        _ if em < 0.92 * body && starts_footnote(words_in_first) => BlockContent::Footnote { text },
        _ => BlockContent::Paragraph { text },
    };
    let words = lines.into_iter().flat_map(|line| line.words).collect();
    DraftBlock { content, words, em, lines: count, stands_alone }
}
