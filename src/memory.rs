//! Configures the allocator and releases its free memory.
//!
//! Decoding needs many large blocks on several threads; without these settings, glibc would keep 60
//! to 100 MB of them.

/// Limits the allocator to two arenas that keep only as much memory as the next image needs, and
/// makes it return large blocks at once. Called at the start of `main`, before any thread is
/// started.
pub fn restrain() {
    #[cfg(target_env = "gnu")]
    {
        const ARENAS: libc::c_int = 2;
        // Set explicitly, so that glibc does not raise it to the size of the largest image.
        // Decoding a 4K JPEG needs less; getting new pages takes an eighth of its import.
        const KEPT: libc::c_int = 2 << 20;
        // SAFETY: mallopt takes two numbers and accesses no memory of the program.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, ARENAS);
            libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        }
    }
}

/// Returns free memory to the system. Takes milliseconds, so it is called when a queue is empty.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes the allocator's locks and does not touch allocated blocks.
    unsafe {
        libc::malloc_trim(0);
    }
}
