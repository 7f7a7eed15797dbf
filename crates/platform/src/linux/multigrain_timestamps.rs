//! Detects multigrain timestamps, which some file systems have since Linux 6.13. If a `stat` has
//! read the timestamp of a file, the next change of the file always gets a new timestamp. On older
//! kernels, two changes within one clock tick (1 to 10 ms) may get the same timestamp.

use nix::sys::statfs::{BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, fstatfs};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

/// nix has this constant for glibc only.
const XFS_SUPER_MAGIC: FsType = FsType(0x5846_5342);
const SUPPORTED: [FsType; 4] = [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];

pub(super) fn are_multigrain(directory: BorrowedFd<'_>) -> bool {
    static IS_NEW_KERNEL: OnceLock<bool> = OnceLock::new();
    let is_new_kernel = *IS_NEW_KERNEL.get_or_init(|| {
        let release = nix::sys::utsname::uname();
        release.is_ok_and(|uname| is_new_enough(&uname.release().to_string_lossy()))
    });
    is_new_kernel && fstatfs(directory).is_ok_and(|stat| SUPPORTED.contains(&stat.filesystem_type()))
}

fn is_new_enough(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multigrain_timestamps_depend_on_the_kernel_release() {
        for release in ["6.13.0", "6.18.44-fc", "7.0-rc1"] {
            assert!(is_new_enough(release), "{release}");
        }
        for release in ["6.12.9", "5.15.0-91-generic", "", "unknown"] {
            assert!(!is_new_enough(release), "{release}");
        }
    }
}
