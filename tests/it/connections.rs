//! The way to Postgres while things change: passwords, restarts, certificates.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use docmill::cluster::{CrashDurability, PrivatePostgres};
use docmill_core::config::{DatabaseConfig, SecretString};
use docmill_ledger::Ledger;
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::{Db, reports::inspect};
use sqlx::{Connection, Executor, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::support::documents;
use crate::support::postgres::TestDatabase;
use crate::support::process::Process;
use crate::support::world::{SOON, until};

const DOCUMENTS: usize = 40;

/// The program with a folder for everything and its database's URL in a file.
fn docmill(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    command
        .args(arguments)
        .env("DOCMILL__DATABASE__URL_FILE", folder.join("url"))
        .env("DOCMILL__DATABASE__STATEMENT_TIMEOUT", "5s")
        .env("DOCMILL__STORE__BACKEND", "folder")
        .env("DOCMILL__STORE__PATH", folder.join("store"))
        .env("DOCMILL__QUEUE__BACKEND", "folder")
        .env("DOCMILL__QUEUE__PATH", folder.join("queue"))
        .env("DOCMILL__QUEUE__WAIT", "1s")
        .env("DOCMILL__CLAIM__LEASE", "10s")
        .env("DOCMILL__WORKER__SLOTS", "3")
        .env("DOCMILL__WORKER__ADDRESS", "127.0.0.1:0")
        .env("DOCMILL__WORKER__DRAIN", "6s");
    command
}

/// A folder that the server's user gets into: Postgres does not run as root.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// How many ingestions have this status; none while the server is away.
async fn count(url: &str, status: &str) -> i64 {
    let Ok(mut connection) = PgConnection::connect(url).await else { return -1 };
    let sql = "SELECT count(*) FROM docmill.ingestion WHERE status = $1";
    sqlx::query_scalar(sql).bind(status).fetch_one(&mut connection).await.unwrap_or(-1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_password_and_a_restarted_server_under_load_fail_no_document() {
    let folder = open_folder();
    let folder = folder.path();
    let cluster =
        PrivatePostgres::start(&folder.join("postgres"), CrashDurability::Fast).await.unwrap();
    let old = cluster.url("postgres");
    std::fs::write(folder.join("url"), &old).unwrap();
    let inbox = folder.join("inbox");
    std::fs::create_dir(&inbox).unwrap();
    for number in 0..DOCUMENTS {
        let bytes = documents::invoice(&format!("R-{number}"));
        std::fs::write(inbox.join(format!("{number}.pdf")), bytes).unwrap();
    }
    for arguments in [["migrate", "--json"], ["submit", inbox.to_str().unwrap()]] {
        let done = docmill(folder, &arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let mut worker = Process::spawn(docmill(folder, &["worker"]), "warn,docmill=info", folder);
    until(SOON, || async { count(&old, "completed").await >= 3 }).await;

    let mut admin = PgConnection::connect(&old).await.unwrap();
    admin.execute("ALTER ROLE postgres PASSWORD 'rotated'").await.unwrap();
    cluster.restart().await.unwrap();
    let (_, place) = old.split_once('@').unwrap();
    let new = format!("postgres://postgres:rotated@{place}");
    let done = count(&new, "completed").await;
    assert!(done < i64::try_from(DOCUMENTS).unwrap(), "there is work left: {done}");
    // The worker has only the old password, and all its connections are closed.
    until(SOON, || async { worker.log().contains("28P01") }).await;
    std::fs::write(folder.join("url"), &new).unwrap();

    let all = i64::try_from(DOCUMENTS).unwrap();
    until(SOON * 3, || async { count(&new, "completed").await == all }).await;
    assert_eq!(count(&new, "failed").await, 0);
    assert!(worker.log().contains("the login to Postgres was replaced"));
    assert!(!worker.log().contains("rotated"), "a password in the log");
    worker.terminate();
    assert!(worker.ended(Duration::from_secs(30)).await.success());
    cluster.stop().await.unwrap();
}

/// A certificate for 127.0.0.1 and its key, put where the server finds them.
fn certify(data: &Path) {
    let (certificate, key) = (data.join("server.crt"), data.join("server.key"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=docmill test", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let owner = std::fs::metadata(data).unwrap();
    for file in [&certificate, &key] {
        std::os::unix::fs::chown(file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_prove_its_name_is_refused_under_verify_full() {
    let folder = open_folder();
    let place = folder.path().join("postgres");
    let cluster = PrivatePostgres::start(&place, CrashDurability::Fast).await.unwrap();
    certify(&place.join("data"));
    let certificate = folder.path().join("root.crt");
    std::fs::copy(place.join("data/server.crt"), &certificate).unwrap();
    let url = cluster.url("postgres");
    let mut admin = PgConnection::connect(&url).await.unwrap();
    admin.execute("ALTER SYSTEM SET ssl = on").await.unwrap();
    cluster.restart().await.unwrap();

    let root = format!("sslmode=verify-full&sslrootcert={}", certificate.display());
    let named_otherwise = url.replace("127.0.0.1", "localhost");
    for (url, trusted) in [
        (format!("{url}?{root}"), true),
        (format!("{url}?sslmode=verify-full"), false),
        (format!("{named_otherwise}?{root}"), false),
    ] {
        let config = DatabaseConfig {
            url: SecretString::from(url.clone()),
            // Long enough for a busy machine; what is refused is refused until the time is over.
            connect_timeout: Duration::from_secs(if trusted { 60 } else { 1 }),
            ..DatabaseConfig::default()
        };
        match Db::connect(&config).await {
            Ok(db) => {
                assert!(trusted, "{url} must not be trusted");
                assert!(inspect::inspect_database(&db).await.unwrap().encrypted, "{url}");
                db.close().await;
            }
            Err(error) => assert!(!trusted, "{url}: {error}"),
        }
    }
    cluster.stop().await.unwrap();
}

/// A message of the protocol: its letter, its length, its content.
fn message(letter: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 4).unwrap().to_be_bytes();
    [&[letter], &length[..], content].concat()
}

/// Speaks the parts of the protocol for a login and one query, as a pooler that lends a server process to
/// one transaction after another. One that keeps a session with settings on its process notes in `kept`
/// that the first process is taken; without `kept` every connection reports the same.
async fn pretend(mut client: TcpStream, kept: Option<Arc<AtomicBool>>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut asked = vec![0; 4096];
    let mut is_keeper = false;
    let ready = message(b'Z', b"I");
    let mut answer = [message(b'R', &0_u32.to_be_bytes()), ready.clone()].concat();
    while let Ok(count @ 1..) = client.read(&mut asked).await {
        if client.write_all(&answer).await.is_err() {
            return;
        }
        let sets = asked.get(..count).unwrap().windows(4).any(|part| part == b"SET ");
        let is_taken = kept.as_ref().is_some_and(|kept| match sets {
            true => kept.swap(true, Ordering::SeqCst),
            false => kept.load(Ordering::SeqCst),
        });
        is_keeper |= sets && !is_taken;
        let pid = if is_taken && !is_keeper { b"43" } else { b"42" };
        // One column of type int4 as text, one row, done.
        let column = [&b"pid\0"[..], &[0; 6], &23_u32.to_be_bytes(), &[0, 4], &[0; 6]].concat();
        let row = [&[0, 1][..], &2_u32.to_be_bytes(), pid].concat();
        answer = [
            message(b'T', &[&[0, 1][..], &column].concat()),
            message(b'D', &row),
            message(b'C', b"SELECT 1\0"),
            ready.clone(),
        ]
        .concat();
    }
}

/// The answer to a connection through such a pooler.
async fn connect_by_pooler(kept: Option<Arc<AtomicBool>>) -> docmill_core::fault::Result<Db> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pretend(client, kept.clone()));
        }
    });
    let config = DatabaseConfig {
        url: SecretString::from(format!("postgres://u:p@{address}/d?sslmode=disable")),
        connect_timeout: Duration::from_secs(5),
        ..DatabaseConfig::default()
    };
    let answer = Db::connect(&config).await;
    serving.abort();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_lends_sessions_by_transaction_is_refused_with_the_reason() {
    let refused = connect_by_pooler(None).await.unwrap_err().to_string();
    assert!(refused.contains("transaction mode") && refused.contains("session mode"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_keeps_a_session_with_settings_on_one_connection_is_taken() {
    connect_by_pooler(Some(Arc::default())).await.unwrap();
}

/// A server that answers a login and nothing after it, as one whose host is gone; whether it was asked
/// something then.
async fn fall_silent_after_login(mut client: TcpStream, is_asked: Arc<AtomicBool>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut asked = vec![0; 4096];
    assert_ne!(client.read(&mut asked).await.unwrap(), 0, "a login");
    let ready = [message(b'R', &0_u32.to_be_bytes()), message(b'Z', b"I")].concat();
    client.write_all(&ready).await.unwrap();
    while let Ok(1..) = client.read(&mut asked).await {
        is_asked.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_connection_that_falls_silent_after_its_login_is_given_up_for_another_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_asked = Arc::new(AtomicBool::default());
    let told = Arc::clone(&is_asked);
    let serving = tokio::spawn(async move {
        let (first, _) = listener.accept().await.unwrap();
        tokio::spawn(fall_silent_after_login(first, told));
        let kept = Some(Arc::default());
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pretend(client, kept.clone()));
        }
    });
    let config = DatabaseConfig {
        url: SecretString::from(format!("postgres://u:p@{address}/d?sslmode=disable")),
        connect_timeout: Duration::from_secs(6),
        ..DatabaseConfig::default()
    };
    let connected = tokio::time::timeout(SOON, Db::connect(&config)).await;
    connected.expect("the start waits for a silent connection without end").unwrap();
    assert!(is_asked.load(Ordering::SeqCst), "the silent connection was not used");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_waits_for_postgres_at_its_start_ends_at_the_first_signal() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = open_folder();
    let url = format!("postgres://u:p@{}/d", listener.local_addr().unwrap());
    std::fs::write(folder.path().join("url"), url).unwrap();
    let mut command = docmill(folder.path(), &["worker"]);
    command.env("DOCMILL__DATABASE__CONNECT_TIMEOUT", "1h");
    let mut worker = Process::spawn(command, "info", folder.path());
    // Taken, and never answered.
    let (_client, _) = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap();
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
    assert!(worker.log().contains("stopped before the start was complete"), "{}", worker.log());
}

/// How often a client has asked for the end of what it sent: `Sync` of Postgres' protocol, each a round trip.
#[derive(Clone, Default)]
struct RoundTrips(Arc<AtomicUsize>);

impl RoundTrips {
    fn so_far(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Passes on what one client sends, and counts.
    async fn forward(self, client: OwnedReadHalf, mut server: OwnedWriteHalf) -> io::Result<()> {
        let mut client = BufReader::new(client);
        // The message that begins a session has no letter: its length alone.
        let mut letter = None;
        loop {
            let length = client.read_u32().await?;
            let mut rest = vec![0; length as usize - 4];
            client.read_exact(&mut rest).await?;
            let mut whole: Vec<u8> = letter.into_iter().collect();
            whole.extend(length.to_be_bytes());
            whole.extend(rest);
            server.write_all(&whole).await?;
            self.0.fetch_add(usize::from(letter == Some(b'S')), Ordering::SeqCst);
            letter = Some(client.read_u8().await?);
        }
    }
}

/// The same database behind an address that counts.
async fn behind_counter(config: DatabaseConfig) -> (DatabaseConfig, RoundTrips) {
    let url = config.url.reveal().to_owned();
    let (login, rest) = url.split_once('@').unwrap();
    let (place, database) = rest.split_once('/').unwrap();
    let (place, trips) = (place.to_owned(), RoundTrips::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("{login}@{address}/{database}?sslmode=disable");
    let counted = trips.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&place).await.unwrap();
            [&client, &server].into_iter().for_each(|side| side.set_nodelay(true).unwrap());
            let ((from, mut to), (mut answers, asked)) = (client.into_split(), server.into_split());
            tokio::spawn(counted.clone().forward(from, asked));
            tokio::spawn(async move { tokio::io::copy(&mut answers, &mut to).await });
        }
    });
    (DatabaseConfig { url: url.into(), ..config }, trips)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_one_round_trip_and_an_idle_connection_returns_to_the_pool() {
    const STATEMENTS: usize = 200;
    let database = TestDatabase::create().await;
    let (config, trips) = behind_counter(database.config()).await;
    let ledger = PostgresLedger::new(Db::connect(&config).await.unwrap());
    ledger.current_time().await.unwrap();
    let before = trips.so_far();
    for _ in 0..STATEMENTS {
        ledger.current_time().await.unwrap();
    }
    let taken = trips.so_far() - before;
    // One more for each second, and for the first use of another connection.
    assert!(taken < STATEMENTS + STATEMENTS / 4, "{taken} round trips for {STATEMENTS} statements");
    let last = trips.so_far();
    until(SOON, || async { trips.so_far() > last }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_lets_postgres_compile_its_statements() {
    let database = TestDatabase::create().await;
    let now = "CREATE OR REPLACE FUNCTION docmill.docmill_now() RETURNS timestamptz LANGUAGE sql AS $$
        SELECT CASE current_setting('jit') WHEN 'off' THEN timestamptz 'epoch' ELSE clock_timestamp() END $$";
    database.pool().execute(now).await.unwrap();
    let config = database.config();
    for db in [Db::connect(&config).await, Db::connect_for_questions(&config).await] {
        let time = PostgresLedger::new(db.unwrap()).current_time().await.unwrap();
        assert_eq!(time, time::OffsetDateTime::UNIX_EPOCH);
    }
}
