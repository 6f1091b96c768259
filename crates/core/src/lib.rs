//! What every other part speaks of: faults, the words of the domain, settings, names of metrics.
//! It knows no other part, opens no connection and reads nothing but the settings.

pub mod company;
pub mod config;
pub mod fault;
pub mod machine;
pub mod mend;
pub mod metrics;
pub mod model;
pub mod retry;
pub mod suspension;
pub mod work_clock;
