//! The one integration test binary: one link, real Postgres, real protocols, real processes.

mod reading;
