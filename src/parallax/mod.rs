//! Pictures that follow the workspaces.
