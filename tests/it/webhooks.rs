//! Webhooks: recorded events are delivered, signed, in order, and only to permitted targets. Over a
//! real Postgres, real HTTP and, where a process dies, real processes.

mod aws;
mod deaths;
mod destinations;
mod files;
mod hooks;
mod outbox;
mod receiver;
mod telling;
