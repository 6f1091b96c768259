//! A cell whose pages do what stands on them: what a bug in a decoder, or a document that uses one,
//! could make a page process do.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::File;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use docmill_core::fault;
use docmill_core::model::{PageReadResult, PageSource, PageText, ReadRecipe, TextLine, TextWord};
use docmill_documents::cpu::confine;
use docmill_documents::pages::serve::{self, PageError, PageReader};
use docmill_documents::pages::{PageContent, ParsedDocument};
use rustix::process::{Resource, getrlimit};

/// The wire's way out; the script that starts this puts it there.
const OUTPUT: &str = "/dev/fd/3";

/// Not a test: what a cell of [`super::super::support::page_processes::Driven`] runs.
#[test]
#[ignore = "run as a cell by other tests"]
fn cell() {
    let output = File::options().write(true).open(OUTPUT).unwrap();
    serve::serve_pages(io::stdin().lock(), output, |setup| {
        confine::limit_resources(setup.address_space)?;
        let confinement = setup
            .permissions
            .as_ref()
            .map(confine::restrict_process)
            .transpose()?
            .unwrap_or_default();
        Ok((confinement, Box::new(|| Ok(Box::new(Deeds)))))
    })
    .unwrap();
}

struct Deeds;

impl PageReader for Deeds {
    fn read_page(
        &mut self,
        document: &ParsedDocument,
        index: u32,
        _: &ReadRecipe,
    ) -> Result<PageReadResult, PageError> {
        let PageContent::Text { lines, width, height } = document.page_content(index)? else {
            return Err(fault::Error::internal("a page without a deed").into());
        };
        let deed = lines.first().map(TextLine::text).unwrap_or_default();
        let page = PageText {
            number: index + 1,
            source: PageSource::Native,
            width,
            height,
            quality: 1.0,
            defects: Vec::new(),
            languages: Vec::new(),
            repaired: false,
            provider: None,
            lines: done(&deed).into_iter().map(|text| line(&text)).collect(),
        };
        Ok(PageReadResult { page, repaired: None })
    }
}

fn line(text: &str) -> TextLine {
    TextLine {
        words: vec![TextWord {
            text: text.to_owned(),
            bounding_box: Default::default(),
            confidence: 1.0,
        }],
    }
}

fn done(deed: &str) -> Vec<String> {
    match deed {
        "pid" => vec![std::process::id().to_string()],
        "wait" => pause(Duration::from_secs(1)),
        "limit" => vec![getrlimit(Resource::As).current.unwrap_or_default().to_string()],
        "say five megabytes" => vec!["x".repeat(5 << 20)],
        "hang" => loop {
            pause(Duration::from_secs(600));
        },
        "ask for everything" => vec![Vec::<u8>::with_capacity(1 << 46).len().to_string()],
        "eat" => eat(),
        "recurse" => vec![recurse(&mut 0).to_string()],
        "babble" => {
            File::options().write(true).open(OUTPUT).unwrap().write_all(&[0xff; 64]).unwrap();
            pause(Duration::from_secs(600))
        }
        "leave" => std::process::exit(7),
        "look around" => look_around(),
        other => panic!("no such deed: {other}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of a cell, where nothing else runs")]
fn pause(time: Duration) -> Vec<String> {
    std::thread::sleep(time);
    Vec::new()
}

/// Takes memory and uses it until there is no more.
fn eat() -> Vec<String> {
    let mut eaten = Vec::new();
    loop {
        eaten.push(vec![1_u8; 16 << 20]);
        std::hint::black_box(&eaten);
    }
}

#[expect(unconditional_recursion, reason = "that is the deed")]
fn recurse(depth: &mut u64) -> u64 {
    let frame = [*depth; 512];
    *depth = std::hint::black_box(frame)[0] ^ 1;
    recurse(depth) ^ frame[1]
}

/// Tries what no reading of a document needs.
fn look_around() -> Vec<String> {
    let program = std::process::Command::new("/bin/true").status().map(|_| ());
    let tries: [(&str, io::Result<()>); 7] = [
        ("read a file", std::fs::read("/etc/passwd").map(|_| ())),
        ("read the environment of others", std::fs::read("/proc/1/environ").map(|_| ())),
        ("list a folder", std::fs::read_dir("/").map(|_| ())),
        ("write a file", std::fs::write("/tmp/docmill-was-here", "x")),
        ("connect", TcpStream::connect(("127.0.0.1", 9)).map(|_| ())),
        ("listen", TcpListener::bind(("127.0.0.1", 0)).map(|_| ())),
        ("run a program", program),
    ];
    tries
        .into_iter()
        .map(|(what, done)| match done {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => format!("{what}: no"),
            Err(error) => format!("{what}: {error}"),
            Ok(()) => format!("{what}: yes"),
        })
        .collect()
}
