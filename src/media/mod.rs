//! Pure pixels and bytes: no thread, no database, no configuration.
