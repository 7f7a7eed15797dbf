//! A small disk for an environment, to be full when a trial wants it: a memory file system, which takes root to mount.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A mounted file system; dropped, it is unmounted.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Of so many MiB; none where this machine does not let us mount.
    pub fn mount(megabytes: u32) -> Option<SmallDisk> {
        let directory = tempfile::Builder::new().prefix("d").tempdir().expect("a directory can be made");
        let options = format!("size={megabytes}m,mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(directory.path());
        mount.output().is_ok_and(|ran| ran.status.success()).then_some(SmallDisk(directory))
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no room on it.
    pub fn fill(&self) {
        let Ok(mut ballast) = File::create(self.filler_path()) else { return };
        let piece = vec![0; 64 * 1024];
        while ballast.write_all(&piece).is_ok() {}
    }

    /// Gives the room back.
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
