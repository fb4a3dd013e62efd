//! Deadlines that notice suspend and clock changes.
