//! The scripted model server as a program, for tests with real processes and for manual tests:
//! `model-standin --listen 127.0.0.1:9001 [--script FILE]`. The file is a JSON [`Script`], which
//! also selects the vendor's protocol; without one the simple reader answers, over OpenAI's. `GET
//! /_calls` lists the calls so far, `GET /_exchanges` whole requests and answers if the script has
//! `"record": true`. It prints its address when it is ready.

use std::net::SocketAddr;
use std::process::ExitCode;

use docmill_testkit::models::{Script, Server};

const USAGE: &str = "usage: model-standin --listen ADDRESS:PORT [--script FILE]";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("model-standin: {problem}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<(), String> {
    let (address, script) = arguments()?;
    let server = Server::listen(address, script)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}"))?;
    eprintln!("listening on {}", server.base_url());
    std::future::pending().await
}

fn arguments() -> Result<(SocketAddr, Script), String> {
    let (mut address, mut script) = (None, Script::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match name.as_str() {
            "--listen" => {
                let parsed = value.parse().map_err(|_| format!("`{value}` is no address"))?;
                address = Some(parsed);
            }
            "--script" => {
                let text = std::fs::read_to_string(&value)
                    .map_err(|error| format!("cannot read {value}: {error}"))?;
                script = serde_json::from_str(&text)
                    .map_err(|error| format!("{value} is no script: {error}"))?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok((address.ok_or(USAGE)?, script))
}
