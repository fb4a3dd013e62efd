//! Playlists: what is due when, and the thread that conducts them.
