//! What happens to devices, as the kernel tells everybody. Reading never blocks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// The kernel's own words; those of udev come later, and in a form of its own.
const KERNEL: u32 = 1;
/// More than the kernel puts into one.
const MESSAGE_MAX: usize = 8 << 10;

/// Readable when something has happened to any device.
#[derive(Debug)]
pub(crate) struct Uevents(OwnedFd);

impl Uevents {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Self(socket))
    }

    /// Reads all that has come: whether any of it is about this kind of device.
    pub(crate) fn drain(&self, subsystem: &str) -> bool {
        let (mut buffer, mut any) = ([0; MESSAGE_MAX], false);
        loop {
            match rustix::io::read(&self.0, &mut buffer) {
                Ok(length) => any |= is_about(&buffer[..length], subsystem),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return any,
                // More came than there was room for: it may have been among what is lost.
                Err(Errno::NOBUFS) => any = true,
                Err(_) => return true,
            }
        }
    }
}

impl AsFd for Uevents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `ACTION@PATH`, then `NAME=VALUE`, each ended by a zero.
fn is_about(message: &[u8], subsystem: &str) -> bool {
    let value = |field: &[u8]| field.strip_prefix(b"SUBSYSTEM=") == Some(subsystem.as_bytes());
    message.split(|&byte| byte == 0).any(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_known_by_their_subsystem() {
        let message = b"change@/devices/AC\0ACTION=change\0DEVPATH=/devices/AC\0\
            SUBSYSTEM=power_supply\0POWER_SUPPLY_ONLINE=0\0SEQNUM=4\0";
        assert!(is_about(message, "power_supply"));
        assert!(!is_about(message, "power"));
        assert!(!is_about(b"", "power_supply"));
        assert!(!is_about(b"add@/x\0X_SUBSYSTEM=power_supply\0SUBSYSTEM=usb", "power_supply"));
    }

    #[test]
    fn nothing_that_has_come_is_no_wait() {
        // Where there is no such socket (a sandbox), there is nothing to read either.
        if let Ok(uevents) = Uevents::new() {
            uevents.drain("no such subsystem");
        }
    }
}
