//! Names and values of query strings and posted forms.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;

/// More names and values than any of our forms has.
const MAX_FIELDS: usize = 50_000;

/// Names and values in the order they came in.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldValues {
    pairs: Vec<(String, String)>,
    /// Place of the first pair of each name: forms of many lines are asked by name.
    first: HashMap<String, usize>,
}

/// Replaces NUL, which Postgres refuses, by the replacement character.
pub(super) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

impl FieldValues {
    /// Parses a form as a browser sends it.
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut fields = Self::default();
        for (name, value) in form_urlencoded::parse(text).take(MAX_FIELDS) {
            let (name, at) = (without_nul(&name), fields.pairs.len());
            fields.first.entry(name.clone()).or_insert(at);
            fields.pairs.push((name, without_nul(&value)));
        }
        fields
    }

    fn first_value(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.get(*self.first.get(name)?)?;
        Some(value)
    }

    /// The first value of this name, trimmed; `None` if it is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.first_value(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// As [`FieldValues::get`]; empty if it is missing.
    pub(super) fn value(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// The first value of this name, as it was sent but for its line ends.
    pub(super) fn raw(&self, name: &str) -> Option<String> {
        Some(self.first_value(name)?.replace("\r\n", "\n"))
    }

    /// As [`FieldValues::get`], as an owned text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// All values of this name, as they were sent.
    pub(super) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.pairs().filter(move |(own, _)| *own == name).map(|(_, value)| value)
    }

    /// All of them.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Those with a value, written as a query string, with `name` set to `value`.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let kept = self.pairs().filter(|(known, value)| *known != name && !value.is_empty());
        query.extend_pairs(kept).append_pair(name, value);
        query.finish()
    }
}

/// The query of the address.
#[derive(Debug, Clone)]
pub(super) struct QueryFields(pub(super) FieldValues);

impl<S: Send + Sync> FromRequestParts<S> for QueryFields {
    type Rejection = ConsoleFailure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(FieldValues::parse(parts.uri.query().unwrap_or_default().as_bytes())))
    }
}

/// A form that was posted by the visitor to whom it was given: without the secret of the visitor's
/// session it is not taken, wherever it comes from.
#[derive(Debug, Clone)]
pub(super) struct PostedForm(pub(super) FieldValues);

impl<S: Send + Sync> FromRequest<S> for PostedForm {
    type Rejection = ConsoleFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let visitor = request.extensions().get::<ConsoleVisitor>().cloned();
        let visitor = visitor.ok_or_else(ConsoleFailure::unknown_visitor)?;
        let UnsignedForm(fields) = UnsignedForm::from_request(request, state).await?;
        if !visitor.owns_form(fields.get("form_secret").unwrap_or_default()) {
            return Err(ConsoleFailure::foreign_form());
        }
        Ok(Self(fields))
    }
}

/// A form from a visitor who is not signed in.
#[derive(Debug, Clone)]
pub(super) struct UnsignedForm(pub(super) FieldValues);

impl<S: Send + Sync> FromRequest<S> for UnsignedForm {
    type Rejection = ConsoleFailure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let body =
            Bytes::from_request(request, state).await.map_err(|error| match error.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    ConsoleFailure::from_status(StatusCode::PAYLOAD_TOO_LARGE)
                }
                _ => ConsoleFailure::wrong_request("The form did not arrive whole."),
            })?;
        Ok(Self(FieldValues::parse(&body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_lose_what_no_database_takes() {
        let fields = FieldValues::parse(b"a=1&b=+x%20&a=2&c=&d=%00&%3Cscript%3E=1");
        assert_eq!(
            (fields.get("a"), fields.get("b"), fields.get("c")),
            (Some("1"), Some("x"), None)
        );
        assert_eq!(fields.get("d"), Some("\u{fffd}"));
        assert_eq!(FieldValues::parse(b"a=1&cursor=x&c=").with("cursor", "y z"), "a=1&cursor=y+z");
    }
}
