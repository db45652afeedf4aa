//! Network devices whose other end is a file.

use std::io;
use std::os::fd::AsFd as _;

use fs_err::{File, OpenOptions};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Attaches to a TUN device: each read and write is an IP packet.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
/// Packets of IP without a header before them.
const TUN_WITHOUT_HEADER: u16 = 0x1001;

/// Opens the other end of a device in a network namespace.
pub(crate) fn open(namespace: &str, device: &str) -> io::Result<File> {
    let open = || {
        let namespace = File::open(format!("/run/netns/{namespace}"))?;
        move_into_link_name_space(namespace.file().as_fd(), Some(LinkNameSpaceType::Network))?;
        let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
        attach(&file, device)?;
        Ok(file)
    };
    // In a thread of its own, which alone is in that namespace.
    std::thread::scope(|scope| scope.spawn(open).join()).expect("it does not panic")
}

#[expect(unsafe_code, reason = "the kernel has no other way to attach to a device")]
fn attach(file: &File, device: &str) -> io::Result<()> {
    // `struct ifreq`: the name, and a union that begins with the flags.
    let mut request = [0_u8; 40];
    request[..device.len()].copy_from_slice(device.as_bytes());
    request[16..18].copy_from_slice(&TUN_WITHOUT_HEADER.to_ne_bytes());
    // SAFETY: the kernel reads and writes a `struct ifreq`, which has 40 bytes.
    let attached = unsafe { ioctl(file.file(), Updater::<TUNSETIFF, [u8; 40]>::new(&mut request)) };
    Ok(attached?)
}
