//! `docmill page-process`: the process of a cell.
//!
//! Reads its setup from standard input, gives up what it does not need, and answers on standard
//! output until its input ends: then its worker is gone, whatever way it went, and so is this
//! process, with every program that it runs.

use std::io;

use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use crate::cpu::Setup;
use crate::cpu::confine::{self, Confinement};
use crate::ocr::Ocr;
use crate::ocr::tesseract::Tesseract;
use crate::pages::serve::{self, MakeReader};

/// Serves until standard input ends.
///
/// # Errors
/// The limits cannot be set, what reads page images is not there, or the other side breaks the
/// rules of the wire.
pub fn page_process() -> io::Result<()> {
    // A panic's words may quote the document, and standard error is read by nobody.
    std::panic::set_hook(Box::new(|_quotes| ()));
    let served = serve::serve(io::stdin().lock(), io::stdout(), prepare);
    if getpgrp() == getpid() {
        // A page may still be under way, and a program with it: neither is waited for.
        kill_current_process_group(Signal::KILL)?;
    }
    served
}

fn prepare(setup: &Setup) -> io::Result<(Confinement, MakeReader)> {
    confine::limit(setup.address_space())?;
    let permissions = setup.permissions.as_ref();
    let confinement = permissions.map(confine::restrict).transpose()?.unwrap_or_default();
    let tesseract = Tesseract::start(&setup.ocr, setup.limits.page_time);
    let tesseract = tesseract.map_err(io::Error::other)?;
    Ok((confinement, Box::new(move || Ok(Box::new(tesseract.recogniser()?)))))
}
