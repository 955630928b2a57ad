//! Sites.
