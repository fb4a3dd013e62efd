//! The hub: every event goes to every subscriber that asked for it.
