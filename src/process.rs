//! Children: the only place that starts programs.
