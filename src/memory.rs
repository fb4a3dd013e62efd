//! Settings of the allocator, and the release of its free memory.
//!
//! The only module that calls the allocator. Decoding needs many large blocks on several threads; glibc
//! would keep 60 to 100 MB of them.

/// Two arenas for all threads, which keep so little that a picture after the other finds its memory
/// again, and large blocks always given back when they are freed. For the first moments of `main`,
/// before there are threads.
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

/// Gives free memory back to the system. Takes milliseconds: for when a queue has run empty.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes the allocator's own locks and touches no live block.
    unsafe {
        libc::malloc_trim(0);
    }
}
