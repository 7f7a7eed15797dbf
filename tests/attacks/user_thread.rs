//! A second user of the machine, as a thread with other credentials. Only root can make one.

use crate::attack_log::AttackLog;
use rustix::process::{Gid, Uid, getuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The uid and the gid of the second user, which are those of `nobody`.
pub(crate) const SECOND_UID: u32 = 65534;

/// A group that the victim shares with the second user.
pub(crate) const SHARED_GID: u32 = 4242;

/// Whether this process can act as another user. Records a skipped attack otherwise.
pub(crate) fn can_be_second_user(log: &mut AttackLog) -> bool {
    if !getuid().is_root() {
        log.skip("all attacks of this group", "only root can act as a second user");
    }
    getuid().is_root()
}

/// Runs `action` as the second user, who is a member of the shared group.
pub(crate) fn as_second_user<T: Send>(action: impl FnOnce() -> T + Send) -> T {
    // On Linux, each thread has credentials of its own.
    let run = || {
        set_thread_groups(&[Gid::from_raw(SHARED_GID)]).unwrap();
        set_thread_gid(Gid::from_raw(SECOND_UID)).unwrap();
        set_thread_uid(Uid::from_raw(SECOND_UID)).unwrap();
        action()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// Sets the permission bits of a file or directory.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}
