//! Settings of the allocator, and the release of its free memory.
//!
//! The only module that calls the allocator. Decoding needs many large blocks on several threads; glibc
//! would keep 60 to 100 MB of them.

/// Limits the allocator to two arenas, which keep only as much as the next picture needs, and returns
/// large blocks at once. Called at the beginning of `main`, before there are threads.
pub fn restrain() {
    #[cfg(target_env = "gnu")]
    {
        const ARENAS: libc::c_int = 2;
        // Fixed, so that glibc does not raise it to the size of the pictures that it has seen. What is
        // decoded of a 4K JPEG is less; pages that are new to it cost an eighth of its import.
        const KEPT: libc::c_int = 2 << 20;
        // SAFETY: mallopt takes two numbers and touches no memory of ours.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, ARENAS);
            libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        }
    }
}

/// Returns free memory to the system. Takes milliseconds, so it is called when a queue has run empty.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes the allocator's own locks and touches no live block.
    unsafe {
        libc::malloc_trim(0);
    }
}
