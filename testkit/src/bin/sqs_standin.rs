//! `sqs-standin [--listen 127.0.0.1:PORT] [--queue NAME]...`: the SQS stand-in as a separate
//! process, for benches. Its first line of output is its address; every queue gets `NAME-dead`,
//! after 1000 receives. It runs until killed.

use std::io::Write as _;
use std::net::SocketAddr;

use docmill_testkit::sqs::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut queues = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--listen" => listen = value.parse()?,
            "--queue" => queues.push(value),
            _ => return Err(format!("unknown argument {argument}: --listen or --queue").into()),
        }
    }
    let mut server = Server::start_on(listen).await?;
    for queue in &queues {
        server.create_queue_with_dead(queue, 1000)?;
    }
    writeln!(std::io::stdout(), "{}", server.endpoint())?;
    std::io::stdout().flush()?;
    server.join().await;
    Ok(())
}
