//! The log: JSON lines in a rotated file, plain text for people.
