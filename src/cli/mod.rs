//! The command: a client of the API.
