//! Gates: named pipes that block a program of the test until the test opens them.

use crate::TestEnv;
use std::io::Write;
use std::process::Command;

impl TestEnv {
    /// Creates a gate and returns its path as a command-line argument. A program that reads from it
    /// blocks until [`TestEnv::open_gate`].
    pub fn create_gate(&self, name: &str) -> String {
        let path = self.path(name).display().to_string();
        let status = Command::new("mkfifo").arg(&path).status().expect("mkfifo starts");
        assert!(status.success(), "mkfifo can't create {path}");
        path
    }

    /// Lets the reader continue and sends it the line `go`. Blocks until a program reads from the
    /// gate.
    pub fn open_gate(&self, name: &str) {
        let mut gate = std::fs::File::options().write(true).open(self.path(name)).expect("the gate exists");
        gate.write_all(b"go\n").expect("a program reads from the gate");
    }
}
