//! The ledger in memory.
