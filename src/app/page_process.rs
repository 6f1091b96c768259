//! `docmill page-process`: the process that opens documents and reads their pages.
//!
//! It reads its setup from standard input, drops its privileges, and answers on standard output
//! until its input closes. Then its worker is gone, and the process ends with every program that it runs.

use std::io;

use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use docmill_core::config::{OcrConfig, OcrEngineChoice};
use docmill_documents::ocr::OcrEngine;
use docmill_documents::ocr::page_engines::PageEngines;
use docmill_documents::reading::serve::{self, PageReaderFactory};
use docmill_documents::sandbox::ProcessSetup;
use docmill_documents::sandbox::confine::{self, ConfinementStatus};

/// Serves until standard input ends.
///
/// # Errors
/// The limits cannot be set, an OCR engine is missing, or the worker breaks the protocol.
pub fn serve_page_process() -> io::Result<()> {
    // A panic message may quote the document, and no one reads standard error.
    std::panic::set_hook(Box::new(|_quotes| ()));
    let served = serve::serve_pages(io::stdin().lock(), io::stdout(), prepare_process);
    if getpgrp() == getpid() {
        // A page may still be under way, and a program with it: neither is waited for.
        kill_current_process_group(Signal::KILL)?;
    }
    served
}

fn prepare_process(setup: &ProcessSetup) -> io::Result<(ConfinementStatus, PageReaderFactory)> {
    confine::limit_resources(setup.address_space)?;
    // The worker has checked the weights already; others than it found must not be read here.
    let is_told = !setup.ocr.models.as_os_str().is_empty();
    let engine = if is_told { setup.ocr.engine } else { OcrEngineChoice::Tesseract };
    let ocr = OcrConfig { engine, ..setup.ocr.clone() };
    let engines = PageEngines::find_installed(&ocr, setup.limits.page_time);
    let engines = engines.map_err(io::Error::other)?;
    // Before the rights are gone: it maps a library. No document is in this process yet.
    engines.load(setup.threads).map_err(io::Error::other)?;
    let permissions = setup.permissions.as_ref();
    if permissions.is_some() {
        confine::check_single_thread()?;
    }
    let confinement = permissions.map(confine::restrict_process).transpose()?.unwrap_or_default();
    Ok((confinement, Box::new(move || Ok(Box::new(engines.make_recogniser()?)))))
}
