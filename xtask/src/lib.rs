//! The local cluster as a library.
