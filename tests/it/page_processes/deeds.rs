//! A page process whose pages contain commands: the possible effects of a decoder bug, or of a
//! document that exploits one.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::File;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use docmill_core::fault;
use docmill_core::model::{PageReadResult, PageSource, PageText, ReadRecipe, TextLine, TextWord};
use docmill_documents::reading::serve::{self, PageError, PageReader};
use docmill_documents::sandbox::confine;
use docmill_documents::{PageContent, PageRaster, ParsedDocument};
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
        let PageContent::Text { lines, width, height, .. } = document.page_content(index)? else {
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
            codes: Vec::new(),
            marks: Vec::new(),
            notes: Vec::new(),
            lines: done(&deed).into_iter().map(|text| line(&text)).collect(),
        };
        Ok(PageReadResult { page, repaired: None })
    }

    fn read_crop(
        &mut self,
        _: &ParsedDocument,
        _: &PageRaster,
        _: &ReadRecipe,
    ) -> Result<Vec<TextLine>, PageError> {
        Err(fault::Error::internal("a piece without a deed").into())
    }
}

fn line(text: &str) -> TextLine {
    TextLine {
        words: vec![TextWord {
            text: text.into(),
            bounding_box: Default::default(),
            confidence: 1.0,
            unwitnessed: false,
        }],
    }
}

fn done(deed: &str) -> Vec<String> {
    match deed {
        "pid" => vec![std::process::id().to_string()],
        "wait" => pause(Duration::from_secs(1)),
        "threads" => vec![rayon::current_num_threads().to_string()],
        "limit" => vec![getrlimit(Resource::As).current.unwrap_or_default().to_string()],
        "say five megabytes" => vec!["x".repeat(5 << 20)],
        "work" => spin(Duration::from_secs(1)),
        "hang" => spin(Duration::from_secs(600)),
        "stand still" => pause(Duration::from_secs(600)),
        "ask for everything" => vec![Vec::<u8>::with_capacity(1 << 46).len().to_string()],
        "eat" => eat(),
        "recurse" => vec![recurse(&mut 0).to_string()],
        "babble" => {
            File::options().write(true).open(OUTPUT).unwrap().write_all(&[0xff; 64]).unwrap();
            pause(Duration::from_secs(600))
        }
        "leave" => std::process::exit(7),
        "look around" => look_around(),
        "breed" => breed(),
        other => match other.split_once(' ') {
            Some(("reach", victim)) => reach_for(victim.parse().unwrap()),
            Some(("run", victim)) => run_programs(victim),
            _ => panic!("no such deed: {other}"),
        },
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of a cell, where nothing else runs")]
fn pause(time: Duration) -> Vec<String> {
    std::thread::sleep(time);
    Vec::new()
}

/// Keeps a core busy.
fn spin(time: Duration) -> Vec<String> {
    let began = std::time::Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
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

/// The result of a try: `no` if the system forbids it.
fn outcome(what: &str, done: io::Result<()>) -> String {
    match done {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => format!("{what}: no"),
        Err(error) => format!("{what}: {error}"),
        Ok(()) => format!("{what}: yes"),
    }
}

/// Tries to reach another process of the same user, by calls that our own library has safe names for.
fn reach_for(victim: i32) -> Vec<String> {
    use rustix::process::{
        DumpableBehavior, PidfdFlags, Resource, Rlimit, Signal, getpgrp, kill_process, pidfd_open,
        prlimit, set_dumpable_behavior, setpgid, setpriority_process, setsid, test_kill_process,
    };
    let pid = rustix::process::Pid::from_raw(victim).unwrap();
    let limit = Rlimit { current: Some(64), maximum: Some(64) };
    let done = |result: rustix::io::Result<()>| result.map_err(io::Error::from);
    let proc = |what: &str| File::open(format!("/proc/{victim}/{what}")).map(|_| ());
    let memory = rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::CLOEXEC);
    let pair = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    );
    [
        ("look whether it lives", done(test_kill_process(pid))),
        ("stop it", done(kill_process(pid, Signal::STOP))),
        ("name it by a descriptor", done(pidfd_open(pid, PidfdFlags::empty()).map(|_| ()))),
        ("limit its files", done(prlimit(Some(pid), Resource::Nofile, limit).map(|_| ()))),
        ("slow it down", done(setpriority_process(Some(pid), 19))),
        ("read its environment", proc("environ")),
        ("read its memory", proc("mem")),
        ("take its files", std::fs::read_dir(format!("/proc/{victim}/fd")).map(|_| ())),
        ("leave the session", done(setsid().map(|_| ()))),
        ("leave the group", done(setpgid(None, None))),
        ("be readable itself", done(set_dumpable_behavior(DumpableBehavior::Dumpable))),
        ("have memory without a name", done(memory.map(|_| ()))),
        ("have a pair of sockets", done(pair.map(|_| ()))),
        (
            "still be in its group",
            match getpgrp() == rustix::process::getpid() {
                true => Err(io::ErrorKind::PermissionDenied.into()),
                false => Ok(()),
            },
        ),
    ]
    .map(|(what, done)| outcome(what, done))
    .into()
}

/// Tries to become many: threads, and processes that would outlive this one.
fn breed() -> Vec<String> {
    let thread = std::thread::Builder::new().spawn(|| ()).map(|thread| thread.join().unwrap());
    let child = std::process::Command::new("/bin/true").spawn().map(|mut child| {
        child.wait().unwrap();
    });
    vec![outcome("start a thread", thread), outcome("start a process", child)]
}

/// Runs programs that try the same, and one that tries nothing; one line per result.
fn run_programs(victim: &str) -> Vec<String> {
    let tries: [(&str, &[&str]); 8] = [
        ("/usr/bin/true", &[]),
        ("/usr/bin/prlimit", &["--pid", victim, "--nofile=64:64"]),
        ("/usr/bin/taskset", &["-p", "1", victim]),
        ("/usr/bin/renice", &["-n", "5", "-p", victim]),
        ("/usr/bin/setsid", &["/usr/bin/true"]),
        ("/usr/bin/ipcmk", &["-M", "4096"]),
        ("/usr/bin/unshare", &["-U", "/usr/bin/true"]),
        ("/usr/bin/kill", &["-s", "0", victim]),
    ];
    tries
        .into_iter()
        .map(|(program, arguments)| {
            let mut command = std::process::Command::new(program);
            command.args(arguments).env_clear().stdin(Stdio::null());
            match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
                Ok(status) if status.success() => format!("{program}: yes"),
                Ok(status) if status.code().is_some() => format!("{program}: no"),
                other => format!("{program}: {other:?}"),
            }
        })
        .collect()
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
    tries.into_iter().map(|(what, done)| outcome(what, done)).collect()
}
