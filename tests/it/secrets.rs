//! The program's output contains no secret of its configuration, and no terminal control
//! characters.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::documents;
use crate::support::process::docmill;
use crate::support::world::World;

const SECRET: &str = "SECRETMARK";

/// The program with these variables and none of ours from outside.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL")) {
        command.env_remove(name);
    }
    let variables = variables.iter().copied();
    command.args(arguments).envs(variables).stdin(Stdio::null()).output().unwrap()
}

fn everything_said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[test]
fn no_command_prints_a_secret_misplaced_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("docmill.toml");
    for (text, place) in [
        ("[llm]\nmodel = 'm'\napi_key = sk-live-SECRETMARK\n", "line 3, column 11"),
        ("[database]\nurl = \"postgres://u:SECRETMARK@h/d\n", "line 2"),
        ("[database]\npassword_file = 'SECRETMARK'\n", "database.password_file"),
        ("[queue]\nvisibility = 'SECRETMARK'\n", "queue.visibility"),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in [&["config", "check"][..], &["config", "show"], &["worker"]] {
            let path = file.to_str().unwrap();
            let output = run(&[command, &["--config", path]].concat(), &[]);
            let said = everything_said(&output);
            assert!(!said.contains(SECRET), "{command:?} of {text:?}: {said}");
            let is_read = command == ["config", "show"] && text.contains("_file");
            assert!(is_read || output.status.code() == Some(2), "{command:?} of {text:?}: {said}");
            assert!(is_read || said.contains(place), "{command:?} of {text:?}: {said}");
        }
    }
    let forgotten = [("DOCMILL__DATABASE", "postgres://u:SECRETMARK@h/d")];
    let said = everything_said(&run(&["config", "check"], &forgotten));
    assert!(said.contains("database") && !said.contains(SECRET), "{said}");
}

#[test]
fn addresses_are_shown_without_user_and_password() {
    let hidden = "https://me:SECRETMARK@host.example:4566/v1?key=SECRETMARK";
    let variables = [
        "STORE__ENDPOINT",
        "QUEUE__ENDPOINT",
        "QUEUE__URL",
        "TELEMETRY__OTLP_ENDPOINT",
        "LLM__BASE_URL",
        "BUCKET__ENDPOINT",
        "OCR__TEXTRACT__ENDPOINT",
        "OCR__DOCUMENT_AI__ENDPOINT",
    ]
    .map(|key| (format!("DOCMILL__{key}"), hidden));
    let variables: Vec<_> = variables.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    for format in [&["config", "show"][..], &["config", "show", "--json"]] {
        let output = run(format, &variables);
        let said = everything_said(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said.matches("https://host.example:4566/v1?***").count(), 8, "{said}");
        assert!(!said.contains(SECRET), "{said}");
    }
}

/// ESC (OSC 52 writes the clipboard), BEL, CSI as one C1 character, an override of the direction.
const HOSTILE: &str = "a\u{1b}]52;c;ZXZpbA==\u{7}\u{9b}2J\u{202e}b.pdf";

fn assert_harmless(command: &str, output: &[u8]) {
    let text = String::from_utf8(output.to_vec()).unwrap();
    let obeyed =
        |c: &char| c.is_control() && !matches!(c, '\n' | '\t' | '\u{c}') || *c == '\u{202e}';
    let found: Vec<char> = text.chars().filter(obeyed).collect();
    assert!(found.is_empty(), "{command} prints {found:?}: {text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_hands_a_name_to_the_terminal_that_the_terminal_would_obey() {
    let world = World::new().await;
    let id = world.insert("plain.pdf", documents::invoice("T-1")).await;
    let name = "E'a\\x1b]52;c;ZXZpbA==\\x07' || chr(155) || '2J' || chr(8238) || 'b.pdf'";
    world
        .execute(&format!(
            "UPDATE docmill.document SET original_name = {name}, file_path = {name},
             tags = jsonb_build_object('a', {name})"
        ))
        .await;
    world
        .execute(
            "UPDATE docmill.ingestion SET detail = (SELECT original_name FROM docmill.document)",
        )
        .await;
    let id = id.to_string();
    for arguments in [
        &["status", &id][..],
        &["status", &id, "--json"],
        &["list"],
        &["list", "--json"],
        &["manifest"],
        &["search", "b.pdf"],
        &["search", "b.pdf", "--json"],
        &["costs"],
        &["dashboard", "--once"],
    ] {
        let output = docmill(&world, arguments, &[]).output().unwrap();
        assert!(!output.stdout.is_empty(), "{arguments:?}: {}", everything_said(&output));
        assert_harmless(&arguments.join(" "), &output.stdout);
        assert_harmless(&arguments.join(" "), &output.stderr);
    }
    let manifest = docmill(&world, &["manifest"], &[]).output().unwrap();
    let row: serde_json::Value = serde_json::from_slice(&manifest.stdout).unwrap();
    assert_eq!(row["original_name"], HOSTILE, "escaped, not altered");
    let file = world.logs.path().join(HOSTILE);
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/invoice_en.pdf");
    std::fs::copy(sample, &file).unwrap();
    let path = file.to_str().unwrap();
    for arguments in [&["process", path][..], &["process", path, "--json"]] {
        let output = docmill(&world, arguments, &[]).output().unwrap();
        assert!(!output.stdout.is_empty(), "{}", everything_said(&output));
        assert_harmless("process", &output.stdout);
    }
    let gone = format!("{path}.gone");
    let output = docmill(&world, &["process", &gone], &[]).output().unwrap();
    assert_harmless("process of what is not there", &output.stderr);
}
