//! Runs jobs until told to stop.
