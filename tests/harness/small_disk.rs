//! A small file system for a test environment, which a test can fill up. It is a tmpfs, and only
//! root can mount it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A mounted tmpfs. Dropping it unmounts it.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts a tmpfs of `megabytes` MiB. `None` if this process may not mount.
    pub fn mount(megabytes: u32) -> Option<SmallDisk> {
        let directory =
            tempfile::Builder::new().prefix("d").tempdir().expect("the mount point can be created");
        let options = format!("size={megabytes}m,mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(directory.path());
        mount.output().is_ok_and(|output| output.status.success()).then_some(SmallDisk(directory))
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the file system: writes a file until no space is left.
    pub fn fill(&self) {
        let Ok(mut filler) = File::create(self.filler_path()) else { return };
        let block = vec![0; 64 * 1024];
        while filler.write_all(&block).is_ok() {}
    }

    /// Frees the space again.
    pub fn free(&self) {
        std::fs::remove_file(self.filler_path()).ok();
    }

    fn filler_path(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.path()).status().ok();
    }
}
