//! Whether a file system's stamps tell any two changes apart. They did not for long: a change within a tick of the
//! kernel's clock (1 to 10 ms) had the stamp of the one before. Since Linux 6.13 a stamp that somebody has looked at is
//! never given again, on the file systems that have taken this up.

use crate::dir_handle::DirHandle;
use std::sync::OnceLock;

/// True if a file in `dir` that was looked at can't change, in its length or not, without having another change time.
#[cfg(target_os = "linux")]
pub(crate) fn has_multigrain_timestamps(dir: &DirHandle) -> bool {
    use nix::sys::statfs::{BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, fstatfs};
    static KERNEL: OnceLock<bool> = OnceLock::new();
    // nix names it where the C library is glibc.
    const XFS_SUPER_MAGIC: FsType = FsType(0x5846_5342);
    let fine = [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];
    let is_new = *KERNEL.get_or_init(|| {
        let release = nix::sys::utsname::uname();
        release.is_ok_and(|it| is_kernel_new_enough(&it.release().to_string_lossy()))
    });
    let is_fine = || fstatfs(dir).is_ok_and(|it| fine.contains(&it.filesystem_type()));
    is_new && dir.has_multigrain_timestamps(is_fine)
}

/// Not known of others.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_multigrain_timestamps(_: &Directory) -> bool {
    false
}

fn is_kernel_new_enough(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_release() {
        for (release, fine) in [("6.13.0", true), ("6.18.44-fc", true), ("7.0-rc1", true), ("6.12.9", false)]
        {
            assert_eq!(is_kernel_new_enough(release), fine, "{release}");
        }
        assert!(
            !is_kernel_new_enough("5.15.0-91-generic")
                && !is_kernel_new_enough("")
                && !is_kernel_new_enough("odd")
        );
    }
}
