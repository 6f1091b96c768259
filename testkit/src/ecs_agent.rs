//! The ECS container agent's endpoint for scale-in protection.
//!
//! Strict by the agent's documentation (`PUT /task-protection/v1/state` with `ProtectionEnabled`
//! and `ExpiresInMinutes` from 1 to 2880); every request is recorded.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::put;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::served::Served;

/// One request: whether to protect, and for how many minutes.
pub type ProtectionRequest = (bool, Option<u64>);

#[derive(Default)]
struct Shared {
    requests: Vec<ProtectionRequest>,
    refuse: u32,
}

type Kept = Arc<Mutex<Shared>>;

/// A running agent; it stops when this is dropped.
pub struct Agent {
    served: Served,
    kept: Kept,
}

impl Agent {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> io::Result<Self> {
        let kept = Kept::default();
        let state = Arc::clone(&kept);
        let router = Router::new().route("/api/task-protection/v1/state", put(take));
        let router = router.with_state(state);
        Ok(Self { served: Served::start(router).await?, kept })
    }

    /// The value for `ECS_AGENT_URI`.
    pub fn uri(&self) -> String {
        format!("{}/api", self.served.endpoint())
    }

    /// The granted requests, oldest first.
    pub fn requests(&self) -> Vec<ProtectionRequest> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }

    /// Refuses the next `times` requests.
    pub fn refuse(&self, times: u32) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).refuse = times;
    }
}

async fn take(State(kept): State<Kept>, Json(wish): Json<Value>) -> (StatusCode, Json<Value>) {
    let Some(enabled) = wish.get("ProtectionEnabled").and_then(Value::as_bool) else {
        return refuse("InvalidParameterException");
    };
    let minutes = wish.get("ExpiresInMinutes").and_then(Value::as_u64);
    if wish.get("ExpiresInMinutes").is_some() && !minutes.is_some_and(|m| (1..=2880).contains(&m)) {
        return refuse("InvalidParameterException");
    }
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.refuse > 0 {
        kept.refuse -= 1;
        return refuse("AccessDeniedException");
    }
    kept.requests.push((enabled, minutes));
    let protection = json!({"ProtectionEnabled": enabled, "TaskArn": "arn:aws:ecs:r:1:task/t"});
    (StatusCode::OK, Json(json!({"protection": protection})))
}

fn refuse(code: &str) -> (StatusCode, Json<Value>) {
    (StatusCode::BAD_REQUEST, Json(json!({"error": {"Code": code, "Message": "refused"}})))
}
