//! The only place that sees all rooms: wiring, supervision, the order of the end.
