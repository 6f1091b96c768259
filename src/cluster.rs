//! A private Postgres cluster, for the embedded mode and for tests.
