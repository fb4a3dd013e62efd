//! Configures the allocator and releases its free memory.
//!
//! Decoding needs many large blocks on several threads; without these settings, glibc would keep 60
//! to 100 MB of them.

/// Bytes that an arena keeps free in a process that decodes or draws. Decoding a 4K JPEG needs less;
/// getting new pages takes an eighth of its import.
pub const FOR_PICTURES: i32 = 2 << 20;
/// The same in the daemon, whose largest blocks are lists of images.
pub(crate) const FOR_LISTS: i32 = 256 << 10;

/// Limits the allocator to two arenas that keep so many bytes free, and makes it return larger blocks
/// at once. Called at the start of `main`, before any thread is started.
pub fn restrain(kept: i32) {
    #[cfg(not(target_env = "gnu"))]
    let _ = kept;
    #[cfg(target_env = "gnu")]
    {
        const ARENAS: libc::c_int = 2;
        // Set explicitly, so that glibc does not raise it to the size of the largest block.
        // SAFETY: mallopt takes two numbers and accesses no memory of the program.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, ARENAS);
            libc::mallopt(libc::M_MMAP_THRESHOLD, kept);
            libc::mallopt(libc::M_TRIM_THRESHOLD, kept);
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
