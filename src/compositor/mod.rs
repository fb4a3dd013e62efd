//! The outputs of the running compositor or X server, as they come and go.
