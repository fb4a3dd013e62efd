//! The library: what comes in, what stays, what goes.
