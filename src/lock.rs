//! One daemon at a time.
