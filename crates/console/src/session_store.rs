//! Sessions: in Postgres, so that they outlive a deploy and several processes share them.
//!
//! A session is an id and the token of its sign-in, both as hashes; rights are asked for at each request.
//! A login that may not keep sessions (`docmill_reader`) leaves them in this process: they end with it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::failure::ConsoleFailure;
use super::secrets::{SecretDigest, make_secret, secret_digest};
use docmill_core::fault;
use docmill_operations::Db;
use docmill_operations::people::{self, SessionTerms};

/// An idle session ends after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(8 * 3600);
/// A session ends after this time in any case.
const MAX_SESSION_AGE: Duration = Duration::from_secs(24 * 3600);
/// Sessions of one token in Postgres; one more ends the one that was not used for longest.
const MAX_SESSIONS_PER_TOKEN: i64 = 100;
/// Sessions of this process, if it keeps them; the same.
const MAX_OWN_SESSIONS: usize = 1_000;

/// A session of this process.
#[derive(Debug)]
struct OwnSession {
    token: SecretDigest,
    opened: Instant,
    used: Instant,
}

impl OwnSession {
    fn is_over(&self) -> bool {
        self.used.elapsed() > IDLE_TIMEOUT || self.opened.elapsed() > MAX_SESSION_AGE
    }
}

/// The sessions of this process.
#[derive(Debug, Default)]
struct OwnSessions(HashMap<SecretDigest, OwnSession>);

impl OwnSessions {
    fn open(&mut self, id: SecretDigest, token: SecretDigest) {
        self.0.retain(|_, session| !session.is_over());
        if self.0.len() >= MAX_OWN_SESSIONS {
            let oldest = self.0.iter().min_by_key(|(_, session)| session.used);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.0.remove(&oldest);
            }
        }
        let now = Instant::now();
        self.0.insert(id, OwnSession { token, opened: now, used: now });
    }

    fn token_of(&mut self, id: &SecretDigest, by_hand: bool) -> Option<SecretDigest> {
        let session = self.0.get_mut(id)?;
        if session.is_over() {
            self.0.remove(id);
            return None;
        }
        if by_hand {
            session.used = Instant::now();
        }
        Some(session.token)
    }
}

/// All sessions.
pub(super) struct SessionStore {
    database: Db,
    is_shared: OnceCell<bool>,
    own: Mutex<OwnSessions>,
}

impl SessionStore {
    pub(super) fn new(database: Db) -> Self {
        Self { database, is_shared: OnceCell::new(), own: Mutex::default() }
    }

    /// Whether sessions and uses of tokens are kept in Postgres; asked once.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn is_shared(&self) -> fault::Result<bool> {
        let asked = self.is_shared.get_or_try_init(async || {
            let may = people::may_keep_sessions(&self.database).await?;
            if !may {
                tracing::warn!(
                    "the database login may not keep sessions (role docmill_operator): they end \
                     with this process"
                );
            }
            Ok(may)
        });
        asked.await.copied()
    }

    /// Opens a session for the holder of a token. Its id.
    ///
    /// # Errors
    /// No answer from Postgres; the system gives no random numbers.
    pub(super) async fn open(&self, token: SecretDigest) -> Result<String, ConsoleFailure> {
        let id = make_secret().map_err(|_no_random| ConsoleFailure::internal())?;
        let hash = secret_digest(&id);
        match self.is_shared().await? {
            true => people::open_session(&self.database, &hash, &token, terms()).await?,
            false => self.own.lock().open(hash, token),
        }
        Ok(id)
    }

    /// The token of a session that is not over. `by_hand`: a person made the request; renewals by
    /// an open page keep no session alive.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn token_of(
        &self,
        id: &str,
        by_hand: bool,
    ) -> fault::Result<Option<SecretDigest>> {
        let hash = secret_digest(id);
        if !self.is_shared().await? {
            return Ok(self.own.lock().token_of(&hash, by_hand));
        }
        let token = people::use_session(&self.database, &hash, by_hand, terms()).await?;
        Ok(token.and_then(|token| token.try_into().ok()))
    }

    /// How many sessions are not over.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn count(&self) -> fault::Result<i64> {
        if self.is_shared().await? {
            return people::count_sessions(&self.database, terms()).await;
        }
        let own = self.own.lock().0.values().filter(|session| !session.is_over()).count();
        Ok(i64::try_from(own).unwrap_or(i64::MAX))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn close(&self, id: &str) -> fault::Result<()> {
        let hash = secret_digest(id);
        self.own.lock().0.remove(&hash);
        match self.is_shared().await? {
            true => people::close_session(&self.database, &hash).await,
            false => Ok(()),
        }
    }
}

fn terms() -> SessionTerms {
    SessionTerms {
        idle_s: IDLE_TIMEOUT.as_secs_f64(),
        age_s: MAX_SESSION_AGE.as_secs_f64(),
        most_of_token: MAX_SESSIONS_PER_TOKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> SecretDigest {
        secret_digest(&number.to_string())
    }

    #[test]
    fn a_session_that_nobody_used_for_hours_is_over_and_one_too_many_ends_the_least_used() {
        let mut sessions = OwnSessions::default();
        for number in 0..=MAX_OWN_SESSIONS {
            sessions.open(digest(number), digest(0));
        }
        assert_eq!(sessions.token_of(&digest(0), true), None);
        let last = digest(MAX_OWN_SESSIONS);
        assert_eq!(sessions.token_of(&last, true), Some(digest(0)));
        if let Some(session) = sessions.0.get_mut(&last)
            && let Some(long_ago) =
                Instant::now().checked_sub(IDLE_TIMEOUT + Duration::from_secs(1))
        {
            session.used = long_ago;
        }
        assert_eq!(sessions.token_of(&last, true), None);
    }

    #[test]
    fn a_page_that_only_says_that_it_is_open_keeps_no_session_alive() {
        let mut sessions = OwnSessions::default();
        sessions.open(digest(1), digest(0));
        let opened = sessions.0[&digest(1)].used;
        assert!(sessions.token_of(&digest(1), false).is_some());
        assert_eq!(sessions.0[&digest(1)].used, opened);
        assert!(sessions.token_of(&digest(1), true).is_some());
        assert!(sessions.0[&digest(1)].used > opened);
    }
}
