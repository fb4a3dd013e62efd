//! The API: HTTP/1.1 on a Unix socket.
