//! Authentication: tokens, sessions, and the rights of a visitor.
//!
//! Only the SHA-256 of a token is stored, which is enough for random ones. Sessions live in this
//! process and are identified by the SHA-256 of their id; a restart ends them all.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use docmill_core::config::{ProxyGroup, WebConfig, WebRole, WebToken};
use docmill_core::model::Priority;
use docmill_core::model::digest::encode_hex;
use docmill_operations::retry::AuditNote;

/// An idle session ends after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(8 * 3600);
/// A session ends after this time in any case.
const MAX_SESSION_AGE: Duration = Duration::from_secs(24 * 3600);
/// Sessions at the same time; one more ends the one that was not used for longest.
const MAX_SESSIONS: usize = 1_000;

/// An authenticated visitor.
#[derive(Debug, Clone)]
pub(super) struct ConsoleVisitor {
    /// Name of the token; the audit records it.
    pub(super) name: String,
    /// The visitor's role.
    pub(super) role: WebRole,
    /// The only tenant that the visitor sees; `None`: all.
    pub(super) tenant: Option<String>,
    /// The most urgent priority that the visitor's documents may have.
    pub(super) highest_priority: Priority,
    /// The secret in every form of this visitor.
    pub(super) form_secret: String,
    /// Whether there is a session that can be ended.
    pub(super) signed_in: bool,
}

impl ConsoleVisitor {
    fn with_token(token: &WebToken, form_secret: String, signed_in: bool) -> Self {
        let tenant = Some(token.tenant.clone()).filter(|tenant| !tenant.is_empty());
        let (name, role, highest_priority) =
            (token.name.clone(), token.role, token.highest_priority);
        Self { name, role, tenant, highest_priority, form_secret, signed_in }
    }

    /// Whether documents of this tenant may be shown.
    pub(super) fn sees(&self, tenant: Option<&str>) -> bool {
        self.tenant.is_none() || self.tenant.as_deref() == tenant
    }

    /// The tenant to filter by: the visitor's own, or else the requested one.
    pub(super) fn narrow_tenant(&self, wished: Option<String>) -> Option<String> {
        self.tenant.clone().or(wished)
    }

    /// The visitor as the audit has it.
    pub(super) fn audit_note(&self, why: &str) -> AuditNote {
        AuditNote { operator: self.audit_name(), why: why.trim().to_owned() }
    }

    /// The visitor's name as the audit has it.
    pub(super) fn audit_name(&self) -> String {
        format!("web:{}", self.name)
    }

    /// Whether a form is one that this visitor was given.
    pub(super) fn owns_form(&self, secret: &str) -> bool {
        !self.form_secret.is_empty()
            && bool::from(self.form_secret.as_bytes().ct_eq(secret.as_bytes()))
    }
}

/// A signed-in visitor.
#[derive(Debug)]
struct OpenSession {
    visitor: ConsoleVisitor,
    opened: Instant,
    used: Instant,
}

impl OpenSession {
    fn is_over(&self) -> bool {
        self.used.elapsed() > IDLE_TIMEOUT || self.opened.elapsed() > MAX_SESSION_AGE
    }
}

/// All who have access.
#[derive(Debug)]
pub(super) struct AccessControl {
    tokens: Vec<WebToken>,
    local: Option<ConsoleVisitor>,
    /// Derives the secrets of forms where a proxy authenticates.
    proxy_secret: String,
    sessions: Mutex<HashMap<String, OpenSession>>,
}

impl AccessControl {
    /// Without tokens and proxy every user of this machine has all rights.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn new(config: &WebConfig) -> Result<Self, getrandom::Error> {
        let local = match config.is_open() {
            true => Some(ConsoleVisitor {
                name: "local".to_owned(),
                role: WebRole::Operator,
                tenant: None,
                highest_priority: Priority::Critical,
                form_secret: make_secret()?,
                signed_in: false,
            }),
            false => None,
        };
        let (tokens, proxy_secret) = (config.tokens.clone(), make_secret()?);
        Ok(Self { tokens, local, proxy_secret, sessions: Mutex::default() })
    }

    /// The visitor for users of this machine, if no sign-in is needed.
    pub(super) fn local_visitor(&self) -> Option<&ConsoleVisitor> {
        self.local.as_ref()
    }

    /// The visitor named by a trusted proxy, with the rights of this group. There is no session, so
    /// the secret of the forms is derived from the name and a secret of this process.
    pub(super) fn visitor_of_proxy(&self, user: &str, group: &ProxyGroup) -> ConsoleVisitor {
        // Both parts have a fixed length: nothing can be appended to either.
        let form_secret = hash_secret(&format!("{}{}", self.proxy_secret, hash_secret(user)));
        let tenant = Some(group.tenant.clone()).filter(|tenant| !tenant.is_empty());
        ConsoleVisitor {
            name: user.to_owned(),
            role: group.role,
            tenant,
            highest_priority: Priority::Critical,
            form_secret,
            signed_in: false,
        }
    }

    /// The visitor with this token. All are compared, each in constant time.
    pub(super) fn visitor_with_token(&self, token: &str) -> Option<ConsoleVisitor> {
        let token = self.find_token(token)?;
        Some(ConsoleVisitor::with_token(token, String::new(), false))
    }

    fn find_token(&self, token: &str) -> Option<&WebToken> {
        let hash = hash_secret(token);
        self.tokens.iter().fold(None, |found, known| {
            let is_it = bool::from(known.sha256.as_bytes().ct_eq(hash.as_bytes()));
            if is_it { Some(known) } else { found }
        })
    }

    /// Signs a visitor in: the id of the session, or `None` if there is no such token.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn open_session(&self, token: &str) -> Result<Option<String>, getrandom::Error> {
        let Some(token) = self.find_token(token) else { return Ok(None) };
        let (id, form_secret) = (make_secret()?, make_secret()?);
        let visitor = ConsoleVisitor::with_token(token, form_secret, true);
        let now = Instant::now();
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, session| !session.is_over());
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) {
                sessions.remove(&oldest);
            }
        }
        sessions.insert(hash_secret(&id), OpenSession { visitor, opened: now, used: now });
        Ok(Some(id))
    }

    /// The visitor of this session, if it is not over. `by_hand`: a person made the request;
    /// renewals by an open page keep no session alive.
    pub(super) fn visitor_of_session(&self, id: &str, by_hand: bool) -> Option<ConsoleVisitor> {
        let hash = hash_secret(id);
        let mut sessions = self.sessions.lock();
        let session = sessions.get_mut(&hash)?;
        if session.is_over() {
            sessions.remove(&hash);
            return None;
        }
        if by_hand {
            session.used = Instant::now();
        }
        Some(session.visitor.clone())
    }

    /// Ends a session.
    pub(super) fn close_session(&self, id: &str) {
        self.sessions.lock().remove(&hash_secret(id));
    }
}

/// 256 random bits, in hex.
///
/// # Errors
/// The system gives no random numbers.
pub(super) fn make_secret() -> Result<String, getrandom::Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    Ok(encode_hex(bits))
}

/// The stored hash of a secret.
pub(super) fn hash_secret(secret: &str) -> String {
    encode_hex(Sha256::digest(secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(tokens: Vec<WebToken>) -> AccessControl {
        AccessControl::new(&WebConfig { tokens, ..WebConfig::default() }).unwrap()
    }

    fn token(name: &str, secret: &str) -> WebToken {
        WebToken {
            name: name.to_owned(),
            sha256: hash_secret(secret),
            role: WebRole::Reviewer,
            tenant: "acme".to_owned(),
            highest_priority: Priority::Critical,
        }
    }

    #[test]
    fn a_session_ends_with_its_sign_out_and_its_forms_are_its_own() {
        let access = access(vec![token("ann", "a"), token("bob", "b")]);
        assert!(access.open_session("c").unwrap().is_none());
        assert!(access.open_session(&hash_secret("a")).unwrap().is_none(), "the hash is no token");
        let ann = access.open_session("a").unwrap().unwrap();
        let bob = access.open_session("b").unwrap().unwrap();
        let visitor = access.visitor_of_session(&ann, true).unwrap();
        assert_eq!((visitor.name.as_str(), visitor.role), ("ann", WebRole::Reviewer));
        assert!(visitor.sees(Some("acme")) && !visitor.sees(Some("other")) && !visitor.sees(None));
        assert!(visitor.owns_form(&visitor.form_secret));
        let other = access.visitor_of_session(&bob, true).unwrap();
        assert!(!visitor.owns_form(&other.form_secret) && !visitor.owns_form(""));
        access.close_session(&ann);
        assert!(access.visitor_of_session(&ann, true).is_none());
        assert!(access.visitor_of_session(&bob, true).is_some());
    }

    #[test]
    fn a_session_that_nobody_used_for_hours_is_over_and_one_too_many_ends_the_least_used() {
        let access = access(vec![token("ann", "a")]);
        let first = access.open_session("a").unwrap().unwrap();
        for _ in 0..MAX_SESSIONS {
            access.open_session("a").unwrap().unwrap();
        }
        assert!(access.visitor_of_session(&first, true).is_none());
        let id = access.open_session("a").unwrap().unwrap();
        if let Some(session) = access.sessions.lock().get_mut(&hash_secret(&id))
            && let Some(long_ago) =
                Instant::now().checked_sub(IDLE_TIMEOUT + Duration::from_secs(1))
        {
            session.used = long_ago;
        }
        assert!(access.visitor_of_session(&id, true).is_none());
    }

    #[test]
    fn a_page_that_only_says_that_it_is_open_keeps_no_session_alive() {
        let access = access(vec![token("ann", "a")]);
        let id = access.open_session("a").unwrap().unwrap();
        let used = |access: &AccessControl| access.sessions.lock()[&hash_secret(&id)].used;
        let opened = used(&access);
        assert!(access.visitor_of_session(&id, false).is_some());
        assert_eq!(used(&access), opened);
        assert!(access.visitor_of_session(&id, true).is_some());
        assert!(used(&access) > opened);
    }

    #[test]
    fn a_visitor_with_a_bearer_token_owns_no_form() {
        let access = access(vec![token("ann", "a")]);
        assert!(!access.visitor_with_token("a").unwrap().owns_form(""));
    }
}
