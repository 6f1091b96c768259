//! The foundation of all other libraries: faults, the words of the domain, settings, names of
//! metrics. Depends on no other part, opens no connection and reads only the settings.

pub mod batching;
pub mod config;
pub mod expense;
pub mod failure_streak;
pub mod fault;
pub mod file_layout;
pub mod machine;
pub mod metrics;
pub mod model;
pub mod regression;
pub mod retry;
pub mod suspension;
pub mod turn;
pub mod work_clock;
