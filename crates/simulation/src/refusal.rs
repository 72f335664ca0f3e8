//! A request the server does not fulfil, as the `Status` a client reads.

use http::StatusCode;
use serde_json::{Value, json};

/// Why a request was refused.
#[derive(Debug)]
pub struct Refusal {
    pub code: StatusCode,
    pub reason: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self { code: StatusCode::NOT_FOUND, reason: "NotFound", message: format!("{what} not found") }
    }

    pub fn conflict(what: impl std::fmt::Display, why: &str) -> Self {
        Self { code: StatusCode::CONFLICT, reason: "Conflict", message: format!("operation cannot be fulfilled on {what}: {why}") }
    }

    pub fn already_exists(what: impl std::fmt::Display) -> Self {
        Self { code: StatusCode::CONFLICT, reason: "AlreadyExists", message: format!("{what} already exists") }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: StatusCode::BAD_REQUEST, reason: "BadRequest", message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: StatusCode::UNPROCESSABLE_ENTITY, reason: "Invalid", message: message.into() }
    }

    pub fn gone(message: impl Into<String>) -> Self {
        Self { code: StatusCode::GONE, reason: "Expired", message: message.into() }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: StatusCode::INTERNAL_SERVER_ERROR, reason: "InternalError", message: message.into() }
    }

    pub fn method_not_allowed() -> Self {
        Self { code: StatusCode::METHOD_NOT_ALLOWED, reason: "MethodNotAllowed", message: "not supported here".to_owned() }
    }

    pub fn status(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        })
    }
}
