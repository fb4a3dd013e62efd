//! Readiness and socket activation, spoken without a library.
