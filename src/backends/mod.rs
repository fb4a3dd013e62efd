//! The six setters behind one trait.
