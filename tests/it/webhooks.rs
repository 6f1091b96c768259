//! Webhooks: what is recorded is told, signed, in order, and to nobody who may not be told. Over a
//! real Postgres, real HTTP and, where something dies, real processes.

mod aws;
mod deaths;
mod destinations;
mod outbox;
mod receiver;
mod telling;
