//! What hangs on the monitors, and the thread that hangs it.
