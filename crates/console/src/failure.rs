//! Errors of requests; the same for pages and programs.
//!
//! The texts are for the visitor: no document content, and of the inside of the service only facts
//! that an operator needs.

use serde::Serialize;
use utoipa::ToSchema;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use docmill_core::fault::{Error, Fault};
use docmill_operations::review::DecisionRefusal;

/// Why a request is not answered. Written as a page or as `application/problem+json` further out.
#[derive(Debug, Clone)]
pub(super) struct ConsoleFailure {
    /// The status of the answer.
    pub(super) status: StatusCode,
    /// A stable word for programs.
    pub(super) code: &'static str,
    /// The text for the reader.
    pub(super) detail: String,
    /// The field of the data or of the request that it is about.
    pub(super) field: Option<String>,
}

/// One place of a request that is wrong (RFC 9457, section 3).
#[derive(Serialize, ToSchema)]
pub(super) struct ProblemPlace {
    /// The place in the body, as a JSON pointer.
    pointer: String,
    detail: String,
}

/// A failure as programs get it, `application/problem+json`.
#[derive(Serialize, ToSchema)]
pub(super) struct Problem {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: String,
    /// The invalid members; empty if the request as a whole is invalid.
    errors: Vec<ProblemPlace>,
}

impl ConsoleFailure {
    /// The same, about this field.
    pub(super) fn about(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    /// The failure for a program.
    pub(super) fn to_problem(&self) -> Problem {
        Problem {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            code: self.code,
            detail: self.detail.clone(),
            errors: self
                .field
                .iter()
                .map(|field| ProblemPlace {
                    pointer: format!("/{}", field.replace('~', "~0").replace('/', "~1")),
                    detail: self.detail.clone(),
                })
                .collect(),
        }
    }

    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), field: None }
    }

    /// The thing does not exist, or not for this visitor: the answer does not differ.
    pub(super) fn missing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not found.")
    }

    /// The visitor is not signed in.
    pub(super) fn unknown_visitor() -> Self {
        let text = "Sign in, or send a valid token: Authorization: Bearer TOKEN.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", text)
    }

    /// This visitor may not do that.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// The form was not given to this visitor.
    pub(super) fn foreign_form() -> Self {
        let text = "This form is not one that you were given, or it is too old: go back, load \
                    the page again, and send it once more.";
        Self::forbidden(text)
    }

    /// The request is malformed.
    pub(super) fn wrong_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    /// The request is understood, and its content is refused.
    pub(super) fn refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", detail)
    }

    /// It cannot be done in the state that things are in.
    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// The document is no longer as the reviewer has seen it.
    pub(super) fn stale_version(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, "version_changed", detail)
    }

    /// Another reviewer has the document open.
    pub(super) fn held(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "held", detail)
    }

    /// A decision without the version it is about.
    pub(super) fn version_needed() -> Self {
        let text = "If-Match must name the version decided about: the ETag of the review.";
        Self::new(StatusCode::PRECONDITION_REQUIRED, "version_needed", text)
    }

    /// Too many unknown tokens: known ones are taken all the same.
    pub(super) fn too_many_unknown() -> Self {
        let text = "Too many invalid tokens were sent. Valid tokens still work.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_unknown", text)
    }

    /// As many do the same as may at once.
    pub(super) fn busy() -> Self {
        let text = "Too many requests of this kind at once. Try again soon.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text)
    }

    /// Another request had this name.
    pub(super) fn key_reused() -> Self {
        let text = "This Idempotency-Key was used for another request.";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", text)
    }

    /// The fault is ours; the log has it.
    pub(super) fn internal() -> Self {
        Self::from_status(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The failure for a status alone, for answers from further in.
    pub(super) fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::missing(),
            StatusCode::METHOD_NOT_ALLOWED => {
                Self::new(status, "method_not_allowed", "Method not allowed.")
            }
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(status, "too_large", "The request is too large.")
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Self::new(status, "unsupported_media_type", "Send application/json.")
            }
            _ if status.is_client_error() => {
                Self::new(status, "bad_request", "The request cannot be understood.")
            }
            _ => Self::new(status, "internal", "Internal error; see the log."),
        }
    }
}

impl From<Error> for ConsoleFailure {
    fn from(error: Error) -> Self {
        match error.fault {
            Fault::Missing => Self::missing(),
            Fault::Rejected => Self::refused(error.to_string()),
            Fault::Misconfigured => Self::conflict(error.to_string()),
            Fault::Transient | Fault::Unavailable | Fault::Throttled(_) | Fault::InLine(_) => {
                tracing::warn!(error = %error, "a page failed: {error}");
                let text = "Postgres, the queue or the store does not answer in time. Ask again; \
                            a search may be too wide: give it more.";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", text)
            }
            _ => {
                tracing::error!(error = %error, "a page failed: {error}");
                Self::from_status(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

impl From<DecisionRefusal> for ConsoleFailure {
    fn from(refusal: DecisionRefusal) -> Self {
        match refusal {
            DecisionRefusal::Changed => Self::stale_version(refusal.to_string()),
            DecisionRefusal::Held(_) => Self::held(refusal.to_string()),
            DecisionRefusal::SamePerson | DecisionRefusal::SameLogin(_) => {
                Self::refused(refusal.to_string())
            }
            DecisionRefusal::Failed(error) => error.into(),
        }
    }
}

impl IntoResponse for ConsoleFailure {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if matches!(self.status.as_u16(), 429 | 503) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let how = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        }
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use docmill_operations::review::ReviewHold;
    use time::OffsetDateTime;

    use super::*;

    #[test]
    fn each_refusal_of_a_decision_has_its_own_status_code_and_text() {
        let (since, until) = (OffsetDateTime::UNIX_EPOCH, OffsetDateTime::UNIX_EPOCH);
        let hold = ReviewHold { reviewer: "web:ann".to_owned(), since, until };
        for (refusal, status, code, text) in [
            (DecisionRefusal::Changed, 412, "version_changed", "has changed since you loaded it"),
            (DecisionRefusal::Held(hold), 409, "held", "web:ann has the document open since 00:00"),
            (DecisionRefusal::SamePerson, 422, "refused", "needs a second person"),
            (Error::new(Fault::Rejected, "no such field").into(), 422, "refused", "no such field"),
            (Error::new(Fault::Missing, "gone").into(), 404, "not_found", "Not found"),
        ] {
            let failure = ConsoleFailure::from(refusal);
            assert_eq!((failure.status.as_u16(), failure.code), (status, code));
            assert!(failure.detail.contains(text), "{failure:?}");
        }
    }
}
