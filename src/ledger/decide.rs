//! The pure decision about a claim, shared by every ledger.
