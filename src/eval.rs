//! Runs a labelled folder through the steps and scores the result.
