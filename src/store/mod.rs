//! The database: opening, migrations, one writer, readers.
