//! Reaching Redis at start: TLS, credentials, and whether this server may be trusted with work.

use std::time::Duration;

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
use ::redis::{AsyncConnectionConfig, Client, ConnectionAddr, TlsCertificates};

use super::errors::{from_redis, is_tls};
use docmill_core::config::QueueConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{RetryBackoff, retry};

/// One command or script, there and back.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// One attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Attempts to connect at start, ten altogether: the server may be starting beside us.
const STARTING: RetryBackoff = RetryBackoff::constant(Duration::from_secs(1)).with_retries(9);
/// The oldest server that has `BLMOVE`.
const OLDEST: (u32, u32) = (6, 2);

/// The client of this configuration; nothing is connected yet.
pub(super) fn build_client(config: &QueueConfig) -> Result<Client> {
    let url = config.redis_url.reveal();
    if config.redis_ca_file.as_os_str().is_empty() {
        return Client::open(url).map_err(invalid_url);
    }
    let pem = std::fs::read(&config.redis_ca_file).map_err(|error| {
        let text = format!(
            "queue.redis_ca_file {} cannot be read: {error}",
            config.redis_ca_file.display()
        );
        Error::new(Fault::Rejected, text)
    })?;
    let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem) };
    Client::build_with_tls(url, certificates).map_err(invalid_url)
}

/// The error of an unusable `queue.redis_url`; it never repeats the address.
fn invalid_url(error: redis::RedisError) -> Error {
    let text = "queue.redis_url is no Redis URL: redis://user:password@host:6379/0, or \
                    rediss:// for TLS";
    Error::new(Fault::Rejected, text).with_source(error)
}

/// `host:port/database`: what may be logged.
pub(super) fn server_address(client: &Client) -> String {
    let info = client.get_connection_info();
    let place = match info.addr() {
        ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
        ConnectionAddr::TcpTls { host, port, .. } => format!("{host}:{port} (TLS)"),
        other => other.to_string(),
    };
    format!("{place}/{}", info.redis_settings().db())
}

/// The shared connection, which connects again by itself, after the server was found good.
pub(super) async fn connect(client: &Client) -> Result<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(Some(ANSWER_TIMEOUT))
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_number_of_retries(2)
        .set_max_delay(Duration::from_secs(1));
    let opened = retry(
        |_| ConnectionManager::new_with_config(client.clone(), config.clone()),
        |error, failed| {
            let error = from_redis("connecting", error.clone());
            let passes = error.fault == Fault::Transient;
            let wait = STARTING.next_wait(failed).filter(|_| passes)?;
            tracing::info!("waiting for Redis at {}: {error}", server_address(client));
            Some(wait)
        },
    );
    let mut connection = opened.await.map_err(|error| match is_tls(&error) {
        true => with_advice(from_redis("connecting", error), client, TLS_ADVICE),
        false => explain_error(from_redis("connecting", error), client),
    })?;
    check_server(&mut connection).await.map_err(|error| explain_error(error, client))?;
    Ok(connection)
}

/// A connection of its own, for a command that blocks up to `wait`.
pub(super) async fn connect_separately(
    client: &Client,
    wait: Duration,
) -> Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(wait + ANSWER_TIMEOUT));
    let connected = client.get_multiplexed_async_connection_with_config(&config).await;
    connected.map_err(|error| from_redis("connecting", error))
}

async fn check_server(connection: &mut ConnectionManager) -> Result<()> {
    let asked = ::redis::cmd("INFO").query_async::<String>(connection).await;
    let info = asked.map_err(|error| from_redis("asking for INFO", error))?;
    let version = info_field(&info, "redis_version").unwrap_or_default();
    if read_version(version).is_some_and(|version| version < OLDEST) {
        let text = format!("it is Redis {version}; 6.2 or later is needed (BLMOVE)");
        return Err(Error::new(Fault::Rejected, text));
    }
    match info_field(&info, "maxmemory_policy") {
        Some("noeviction") | None => Ok(()),
        Some(evicting) => Err(Error::new(
            Fault::Rejected,
            format!(
                "its maxmemory-policy is {evicting}: it would drop messages and leases when its \
                 memory is full; set it to noeviction"
            ),
        )),
    }
}

fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line: &'a str| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn read_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

const TLS_ADVICE: &str = "name the authority that signed the server's certificate in \
                          queue.redis_ca_file, and the server as its certificate does; a server \
                          without TLS is redis:// in queue.redis_url";

fn explain_error(error: Error, client: &Client) -> Error {
    let advice = match error.fault {
        Fault::Unavailable => {
            "check user and password in queue.redis_url, and the user's rights: the documentation \
             on operating Redis lists them"
        }
        Fault::Rejected => "queue.redis_url",
        _ => {
            "check queue.redis_url (rediss:// if the server speaks TLS), the network and whether \
             the server is up"
        }
    };
    with_advice(error, client, advice)
}

fn with_advice(error: Error, client: &Client, advice: &str) -> Error {
    let context = format!(
        "Redis at {} cannot be used as a queue: {error} ({advice})",
        server_address(client)
    );
    Error { context: context.into(), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_versions_are_read_from_the_servers_info() {
        let info = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\n";
        assert_eq!(info_field(info, "maxmemory_policy"), Some("allkeys-lru"));
        assert_eq!(info_field(info, "maxmemory"), None);
        assert_eq!(read_version("7.0.15"), Some((7, 0)));
        assert!(read_version("6.0.16").is_some_and(|version| version < OLDEST));
        assert_eq!(read_version("valkey"), None);
    }
}
