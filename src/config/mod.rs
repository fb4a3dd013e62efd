//! The settings: one TOML file, one schema, one snapshot.
