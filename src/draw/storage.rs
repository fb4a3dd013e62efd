//! A frame of pixels in memory shared with the compositor, four bytes each (blue, green, red, unused).
//!
//! The memory is allocated before it is mapped, so that a machine without memory gives an error and not
//! a signal, and sealed against shrinking, so that the compositor gets no signal either. It is mapped
//! only while a thread draws or reads it; otherwise it costs this process no memory.

use std::ffi::c_void;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

pub(super) const PIXEL: usize = 4;

/// The descriptor of one frame.
#[derive(Debug)]
pub(super) struct Storage {
    descriptor: OwnedFd,
    size: (u32, u32),
}

impl Storage {
    pub(super) fn new(size: (u32, u32)) -> io::Result<Self> {
        let length = bytes(size).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create("murald", flags)?;
        rustix::fs::fallocate(&descriptor, FallocateFlags::empty(), 0, length as u64)?;
        rustix::fs::fcntl_add_seals(&descriptor, SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(Self { descriptor, size })
    }

    pub(super) fn size(&self) -> (u32, u32) {
        self.size
    }

    /// The length in bytes, of the type that a pool of shared memory has.
    pub(super) fn length(&self) -> i32 {
        bytes(self.size).map_or(0, |bytes| bytes as i32)
    }

    pub(super) fn map(&self) -> io::Result<Mapping> {
        Mapping::new(self.as_fd(), bytes(self.size).unwrap_or_default())
    }
}

impl AsFd for Storage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// `None` for no bytes, and for more than the protocol's 32 bits can hold.
fn bytes((width, height): (u32, u32)) -> Option<usize> {
    let bytes = u64::from(width)
        .checked_mul(height.into())?
        .checked_mul(PIXEL as u64)?;
    i32::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes > 0)
        .map(|bytes| bytes as usize)
}

/// The pixels of a storage, for as long as this lives.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

impl Mapping {
    fn new(descriptor: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // All pages are mapped at once, since all of them will be used.
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses a place that nothing else has, and gives what is asked for or an
        // error. The file is as long as this and cannot shrink.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length, access, flags, descriptor, 0)?
        };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped and backed for as long as `self` lives. The compositor only reads it, and we
        // write through the one mapping that is borrowed mutably, to storage that no other code has
        // mapped for reading at that time.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for Mapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what `new` has mapped, once, and no slice of it outlives `self`.
        unsafe { rustix::mm::munmap(self.start.as_ptr(), self.length).ok() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_pixels_are_in_the_next_mapping() {
        let storage = Storage::new((3, 2)).unwrap();
        storage.map().unwrap()[23] = 7;
        let seen = storage.map().unwrap();
        assert_eq!((seen.len(), seen[23], seen[0]), (24, 7, 0));
        assert_eq!(storage.length(), 24);
    }

    #[test]
    fn unavailable_memory_is_an_error() {
        assert!(Storage::new((0, 5)).is_err());
        assert!(Storage::new((65_535, 65_535)).is_err());
    }
}
