//! Where things live: the XDG base directories, and paths as people write them.
