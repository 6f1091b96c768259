//! The login to Postgres, and its renewal at run time.
//!
//! User, host and database come from the URL; the password from there too, or from a file that may
//! be replaced, or from AWS, which signs a new one every few minutes. Open connections stay as they
//! are: Postgres asks for a password only when a connection is made.

use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};

use super::iam::{DatabaseUser, PasswordSigner};
use docmill_core::config::{DatabaseConfig, SecretSource};
use docmill_core::fault::{Error, Fault, Result};

/// A file is checked this often.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(3);
/// A signed password lives for 15 minutes.
const SIGNING_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// How to log in.
#[derive(Debug)]
pub(in crate::db) struct DatabaseLogin {
    url: SecretSource,
    password: Option<SecretSource>,
    signer: Option<PasswordSigner>,
}

/// The parts of a login at one moment; equal texts need no new options.
#[derive(PartialEq, Eq)]
struct DatabaseCredentials {
    url: String,
    password: Option<String>,
}

impl DatabaseLogin {
    /// Nothing connects; with `database.iam` AWS's usual chain is asked for credentials.
    pub(in crate::db) async fn new(config: &DatabaseConfig) -> Result<Self> {
        let file = &config.password_file;
        let password = (!file.as_os_str().is_empty())
            .then(|| SecretSource::new(&docmill_core::config::SecretString::default(), file));
        let signer =
            if config.iam { Some(PasswordSigner::new(&config.region).await?) } else { None };
        Ok(Self { url: SecretSource::new(&config.url, &config.url_file), password, signer })
    }

    /// The options as of now.
    pub(in crate::db) async fn connect_options(&self) -> Result<PgConnectOptions> {
        let credentials = self.load_credentials()?;
        self.options_for(&credentials).await
    }

    fn load_credentials(&self) -> Result<DatabaseCredentials> {
        let read = |source: &SecretSource, key: &str| {
            let secret = source.current_secret().map_err(|problem| {
                Error::new(Fault::Denied, format!("database.{key}: {problem}"))
            })?;
            Ok::<_, Error>(secret.reveal().to_owned())
        };
        let password = self.password.as_ref();
        Ok(DatabaseCredentials {
            url: read(&self.url, "url_file")?,
            password: password.map(|source| read(source, "password_file")).transpose()?,
        })
    }

    async fn options_for(&self, credentials: &DatabaseCredentials) -> Result<PgConnectOptions> {
        // The parser's own message may quote the URL, and with it the password.
        let options: PgConnectOptions = credentials.url.parse().map_err(|_| {
            Error::internal(
                "database.url cannot be read: write postgres://user:password@host:port/database \
                 and percent-encode what is special in user and password",
            )
        })?;
        // Statements are traced by their callers; sqlx's own log would double every line.
        let mut options = options.application_name("docmill").disable_statement_logging();
        if let Some(password) = &credentials.password {
            options = options.password(password);
        }
        if let Some(signer) = &self.signer {
            let (host, port) = (options.get_host(), options.get_port());
            let user = DatabaseUser { host, port, name: options.get_username() };
            let token = signer.sign_password(user).await?;
            options = options.password(&token);
        }
        Ok(options)
    }

    fn refresh_interval(&self) -> Option<Duration> {
        match (&self.signer, &self.password) {
            (Some(_), _) => Some(SIGNING_INTERVAL),
            (None, Some(_)) => Some(FILE_CHECK_INTERVAL),
            (None, None) => self.url.is_file().then_some(FILE_CHECK_INTERVAL),
        }
    }
}

/// Lets the pool's next connections use what is current, until the pool is closed.
pub(in crate::db) fn refresh_credentials(pool: PgPool, login: Arc<DatabaseLogin>) {
    let Some(every) = login.refresh_interval() else { return };
    tokio::spawn(async move {
        let mut known = login.load_credentials().ok();
        loop {
            tokio::select! {
                () = pool.close_event() => return,
                () = tokio::time::sleep(every) => {}
            }
            match refreshed_options(&login, &mut known).await {
                Ok(Some(options)) => pool.set_connect_options(options),
                Ok(None) => {}
                Err(error) => tracing::warn!(
                    error = %error,
                    "the login to Postgres could not be renewed, the old one is kept: {error}"
                ),
            }
        }
    });
}

/// New options if something changed; signed passwords always do.
async fn refreshed_options(
    login: &DatabaseLogin,
    known: &mut Option<DatabaseCredentials>,
) -> Result<Option<PgConnectOptions>> {
    let credentials = login.load_credentials()?;
    let same = known.as_ref() == Some(&credentials);
    if same && login.signer.is_none() {
        return Ok(None);
    }
    let options = login.options_for(&credentials).await?;
    if !same {
        tracing::info!("the login to Postgres was replaced");
        *known = Some(credentials);
    }
    Ok(Some(options))
}
