//! Authentication: tokens, sessions, and the rights of a visitor.
//!
//! Only the SHA-256 of a token is stored, which is enough for random ones. Rights are those of the token
//! at each request: a token that is revoked, or gone from the settings, takes its sessions along.

use subtle::ConstantTimeEq as _;

use super::failure::ConsoleFailure;
use super::secrets::{SecretDigest, hash_secret, make_secret, secret_digest};
use super::session_store::SessionStore;
use docmill_core::config::{ProxyGroup, WebConfig, WebRole, WebToken};
use docmill_core::fault;
use docmill_core::model::Priority;
use docmill_core::model::digest::encode_hex;
use docmill_operations::Db;
use docmill_operations::people::{self, TokenHolder};
use docmill_operations::retry::AuditNote;

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
    /// The holder of a token of the settings, without a session.
    fn with_token(token: &WebToken) -> Self {
        Self {
            name: token.name.clone(),
            role: token.role,
            tenant: Some(token.tenant.clone()).filter(|tenant| !tenant.is_empty()),
            highest_priority: token.highest_priority,
            form_secret: String::new(),
            signed_in: false,
        }
    }

    /// The holder of a token of Postgres; `None` for rights that a later release has written.
    fn with_holder(holder: TokenHolder) -> Option<Self> {
        Some(Self {
            role: WebRole::from_code(&holder.role)?,
            highest_priority: Priority::from_code(&holder.highest_priority)?,
            name: holder.name,
            tenant: Some(holder.tenant).filter(|tenant| !tenant.is_empty()),
            form_secret: String::new(),
            signed_in: false,
        })
    }

    /// The same with the session of this id, whose forms are no other session's.
    fn with_session(self, id: &str) -> Self {
        Self { form_secret: hash_secret(&format!("forms of {id}")), signed_in: true, ..self }
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

/// All who have access.
pub(super) struct AccessControl {
    database: Db,
    tokens: Vec<WebToken>,
    /// Whether users of Postgres have access too.
    has_users: bool,
    local: Option<ConsoleVisitor>,
    /// Derives the secrets of forms where a proxy authenticates.
    proxy_secret: String,
    sessions: SessionStore,
}

impl AccessControl {
    /// Without tokens, users and proxy every user of this machine has all rights.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn new(config: &WebConfig, database: Db) -> Result<Self, getrandom::Error> {
        let local = match config.is_open() {
            true => Some(ConsoleVisitor {
                name: "local".to_owned(),
                role: WebRole::Administrator,
                tenant: None,
                highest_priority: Priority::Critical,
                form_secret: make_secret()?,
                signed_in: false,
            }),
            false => None,
        };
        // A secret that processes share lets a form outlive the process that gave it out.
        let shared = config.proxy.secret_source().current_secret().ok();
        let proxy_secret = match shared.filter(|secret| !secret.is_empty()) {
            Some(secret) => hash_secret(&format!("forms of proxy {}", secret.reveal())),
            None => make_secret()?,
        };
        let sessions = SessionStore::new(database.clone());
        let (tokens, has_users) = (config.tokens.clone(), config.users);
        Ok(Self { database, tokens, has_users, local, proxy_secret, sessions })
    }

    /// The visitor for users of this machine, if no sign-in is needed.
    pub(super) fn local_visitor(&self) -> Option<&ConsoleVisitor> {
        self.local.as_ref()
    }

    /// The visitor named by a trusted proxy, with the rights of this group. There is no session, so
    /// the secret of the forms is derived from the name and a secret.
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

    /// The visitor with this token.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn visitor_with_token(
        &self,
        token: &str,
    ) -> fault::Result<Option<ConsoleVisitor>> {
        self.find_visitor(&secret_digest(token)).await
    }

    /// The holder of the token with this hash, of the settings or of Postgres.
    async fn find_visitor(&self, hash: &SecretDigest) -> fault::Result<Option<ConsoleVisitor>> {
        if let Some(token) = find_token(&self.tokens, hash) {
            return Ok(Some(ConsoleVisitor::with_token(token)));
        }
        if !self.has_users {
            return Ok(None);
        }
        let holder = people::find_holder(&self.database, hash).await?;
        if holder.as_ref().is_some_and(|holder| holder.is_stale)
            && self.sessions.is_shared().await?
        {
            people::note_use(&self.database, hash).await?;
        }
        Ok(holder.and_then(ConsoleVisitor::with_holder))
    }

    /// Signs a visitor in: the id of the session, or `None` if there is no such token.
    ///
    /// # Errors
    /// No answer from Postgres; the system gives no random numbers.
    pub(super) async fn open_session(&self, token: &str) -> Result<Option<String>, ConsoleFailure> {
        let hash = secret_digest(token);
        match self.find_visitor(&hash).await? {
            Some(_) => self.sessions.open(hash).await.map(Some),
            None => Ok(None),
        }
    }

    /// The visitor of this session, if it is not over, with the rights that its token has now.
    /// `by_hand`: a person made the request; renewals by an open page keep no session alive.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn visitor_of_session(
        &self,
        id: &str,
        by_hand: bool,
    ) -> fault::Result<Option<ConsoleVisitor>> {
        let Some(token) = self.sessions.token_of(id, by_hand).await? else { return Ok(None) };
        let visitor = self.find_visitor(&token).await?;
        Ok(visitor.map(|visitor| visitor.with_session(id)))
    }

    /// How many sessions are not over.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn count_sessions(&self) -> fault::Result<i64> {
        self.sessions.count().await
    }

    /// Ends a session.
    ///
    /// # Errors
    /// No answer from Postgres.
    pub(super) async fn close_session(&self, id: &str) -> fault::Result<()> {
        self.sessions.close(id).await
    }
}

/// The token of the settings with this hash. All are compared, each in constant time.
fn find_token<'t>(tokens: &'t [WebToken], hash: &SecretDigest) -> Option<&'t WebToken> {
    let hash = encode_hex(hash);
    tokens.iter().fold(None, |found, known| {
        let is_it = bool::from(known.sha256.as_bytes().ct_eq(hash.as_bytes()));
        if is_it { Some(known) } else { found }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_token_is_known_by_its_whole_hash_and_its_hash_is_none() {
        let tokens = [token("ann", "a"), token("bob", "b")];
        for (secret, name) in [("a", Some("ann")), ("b", Some("bob")), ("c", None)] {
            let found = find_token(&tokens, &secret_digest(secret));
            assert_eq!(found.map(|token| token.name.as_str()), name, "{secret}");
        }
        assert!(find_token(&tokens, &secret_digest(&hash_secret("a"))).is_none());
        let mut near = secret_digest("a");
        near[31] ^= 1;
        assert!(find_token(&tokens, &near).is_none(), "all but the last bit");
    }

    #[test]
    fn a_visitor_sees_one_tenant_and_owns_the_forms_of_one_session() {
        let ann = ConsoleVisitor::with_token(&token("ann", "a"));
        assert!(ann.sees(Some("acme")) && !ann.sees(Some("other")) && !ann.sees(None));
        assert!(!ann.owns_form(""), "a bearer token has no session");
        let (one, other) = (ann.clone().with_session("1"), ann.with_session("2"));
        assert!(one.owns_form(&one.form_secret) && !one.owns_form(&other.form_secret));
        assert!(!one.owns_form(""));
    }

    #[test]
    fn rights_that_a_later_release_has_written_are_none() {
        let holder = |role: &str| TokenHolder {
            name: "ann".to_owned(),
            role: role.to_owned(),
            tenant: String::new(),
            highest_priority: "normal".to_owned(),
            is_stale: false,
        };
        assert!(ConsoleVisitor::with_holder(holder("reviewer")).is_some());
        assert!(ConsoleVisitor::with_holder(holder("auditor")).is_none());
    }
}
