//! Detects multigrain timestamps: whether any two changes of a file get different timestamps. On
//! older kernels, two changes within one clock tick (1 to 10 ms) may get the same timestamp. Since
//! Linux 6.13, some file systems give a change a new timestamp if a `stat` has read the previous
//! one.

use crate::dir_handle::DirHandle;
use std::sync::OnceLock;

/// Whether every change of a file in `dir` after a `stat` gives the file a new change time.
#[cfg(target_os = "linux")]
pub(crate) fn has_multigrain_timestamps(dir: &DirHandle) -> bool {
    use nix::sys::statfs::{BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, fstatfs};
    static KERNEL: OnceLock<bool> = OnceLock::new();
    // nix has this constant for glibc only.
    const XFS_SUPER_MAGIC: FsType = FsType(0x5846_5342);
    let supported = [BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC];
    let is_new_kernel = *KERNEL.get_or_init(|| {
        let release = nix::sys::utsname::uname();
        release.is_ok_and(|uname| is_kernel_new_enough(&uname.release().to_string_lossy()))
    });
    let is_supported = || fstatfs(dir).is_ok_and(|stat| supported.contains(&stat.filesystem_type()));
    is_new_kernel && dir.has_multigrain_timestamps(is_supported)
}

/// Always false: other systems are not known to have multigrain timestamps.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_multigrain_timestamps(_: &DirHandle) -> bool {
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
    fn multigrain_timestamps_depend_on_the_kernel_release() {
        for (release, supported) in
            [("6.13.0", true), ("6.18.44-fc", true), ("7.0-rc1", true), ("6.12.9", false)]
        {
            assert_eq!(is_kernel_new_enough(release), supported, "{release}");
        }
        assert!(
            !is_kernel_new_enough("5.15.0-91-generic")
                && !is_kernel_new_enough("")
                && !is_kernel_new_enough("unknown")
        );
    }
}
