//! What differs between operating systems. No other crate calls a facility of one operating system itself.
//!
//! [`System`] lists the facilities. It has three implementations:
//!
//! - `linux`: the process files and calls of Linux;
//! - `bsd`: kqueue and the process tables of macOS and FreeBSD;
//! - `posix`: what POSIX and `ps` offer. Only tests use it.
//!
//! [`system`] returns the implementation of the running system. In debug builds, the environment
//! variable `TEST_PLATFORM=posix` selects `posix` on every system, so that tests can run with it.
//!
//! A question that a system cannot answer has the answer "unknown": an error, or a `None`, an empty list
//! or a `true` where the function says so. "Unknown" never means that a process has exited.

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
mod bsd;
mod choose_system;
pub mod close_inherited_descriptors;
mod find_by_environment;
mod kill_by_environment;
#[cfg(target_os = "linux")]
mod linux;
mod posix;
mod process_entry;
mod process_exit_handle;
mod process_lookup;
pub mod process_tree;
mod signal_by_pid;
mod system_limits_with_usage;
mod system_trait;
mod terminal_read_counter;
pub mod unix_sockets_and_peers;
mod write_lease;

pub use choose_system::system;
pub use find_by_environment::find_by_environment;
pub use kill_by_environment::kill_by_environment;
pub use process_entry::{EnvironmentError, PidOrigin, ProcessEntry, ProcessEnvironment};
pub use process_exit_handle::ExitHandle;
pub use system_limits_with_usage::{ResourceLimit, WatchLimit};
pub use system_trait::System;
pub use terminal_read_counter::TerminalReads;
pub use unix_sockets_and_peers::SocketPeer;
pub use write_lease::WriteLease;

/// Whether `mkdir` can create a directory with the sticky bit. If not, the bit is set afterwards.
pub const MKDIR_SETS_STICKY_BIT: bool = cfg!(target_os = "linux");

/// The file type and permission bits of a file. On macOS and FreeBSD, `mode_t` has 16 bits.
#[allow(clippy::useless_conversion, reason = "the width differs between systems")]
pub fn mode_bits(mode: nix::libc::mode_t) -> u32 {
    u32::from(mode)
}
