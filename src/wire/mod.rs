//! What travels between daemon and clients.
