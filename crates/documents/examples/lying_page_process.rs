//! A page process that was taken over, for `DOCMILL__CPU__PROGRAM` in `scripts/attacks`. Its lie is
//! named in the file `mode` beside it, since its environment is empty: `pages` claims more pages
//! than there can be, `words` answers with a head of 60 MB, `orphan` leaves a child that keeps the
//! pipe open and answers nothing more. Each request is noted in the file `asked` beside it, so that
//! an attack shows that it arrived. Built from the types of the wire: it speaks what workers speak.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use docmill_core::model::PageText;
use docmill_documents::sandbox::confine::ConfinementStatus;
use docmill_documents::sandbox::wire::{
    DocumentAnswer, DocumentRequest, ReadyFrame, ReplyFrame, RequestFrame, read_frame, write_frame,
};
use docmill_formats::einvoice::EinvoiceFinding;

/// Longer than any attack is watched.
const SILENCE: Duration = Duration::from_secs(600);
/// Three bytes each in the head.
const LANGUAGES: usize = 20_000_000;

fn main() -> io::Result<()> {
    let program = std::env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let mode = fs::read_to_string(folder.join("mode"))?;
    let mut asked = OpenOptions::new().create(true).append(true).open(folder.join("asked"))?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let _setup: Option<(serde_json::Value, _)> = read_frame(&mut input, u64::MAX)?;
    let confinement = ConfinementStatus { files: true, calls: true };
    write_frame(&mut output, &ReadyFrame { confinement }, &[])?;
    while let Some((frame, _)) = read_frame::<RequestFrame>(&mut input, u64::MAX)? {
        let RequestFrame { id, request } = frame;
        let shown = format!("{request:?}");
        writeln!(asked, "{}", shown.split_whitespace().next().unwrap_or_default())?;
        let answer = match request {
            DocumentRequest::Close { .. } => continue,
            // Never answered.
            DocumentRequest::Read { .. }
            | DocumentRequest::Print { .. }
            | DocumentRequest::Show { .. }
                if mode.trim() == "orphan" =>
            {
                continue;
            }
            DocumentRequest::Open { scan_einvoice, .. } => {
                open_document(mode.trim(), scan_einvoice)?
            }
            DocumentRequest::Fields { .. } => DocumentAnswer::Fields { of_text: false },
            _ => {
                let mut page = PageText::from_native(1, (1.0, 1.0), 1.0, Vec::new());
                page.languages = vec![String::new(); LANGUAGES];
                DocumentAnswer::Read { page: Box::new(page), image: None }
            }
        };
        write_unchecked(&mut output, &ReplyFrame { id, answer })?;
    }
    Ok(())
}

fn open_document(mode: &str, scan_einvoice: bool) -> io::Result<DocumentAnswer> {
    if mode == "orphan" {
        // It inherits the pipe of the answers, and outlives a signal to our group.
        Command::new("sleep").arg(SILENCE.as_secs().to_string()).process_group(0).spawn()?;
    }
    let pages = if mode == "pages" { u32::MAX } else { 1 };
    let einvoice = scan_einvoice.then_some(EinvoiceFinding::NONE);
    Ok(DocumentAnswer::Opened { pages, members: Vec::new(), members_left_out: false, einvoice })
}

/// As `write_frame`, without its cap on the head.
fn write_unchecked(to: &mut impl io::Write, head: &ReplyFrame) -> io::Result<()> {
    let head = serde_json::to_vec(head)?;
    to.write_all(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes())?;
    to.write_all(&0_u64.to_le_bytes())?;
    to.write_all(&head)?;
    to.flush()
}
