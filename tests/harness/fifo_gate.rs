//! A gate: a named pipe at which a program of the test waits until the test lets it go on.

use crate::TestEnv;
use std::io::Write;
use std::process::Command;

impl TestEnv {
    /// Makes one; gives its path as a word for a command line. Whoever reads from it waits.
    pub fn create_gate(&self, name: &str) -> String {
        let path = self.path(name).display().to_string();
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo is there");
        assert!(made.success(), "{path} can be made");
        path
    }

    /// Lets who reads there go on, with the line `go`; waits until somebody reads.
    pub fn open_gate(&self, name: &str) {
        let mut gate = std::fs::File::options().write(true).open(self.path(name)).expect("it was made");
        gate.write_all(b"go\n").expect("somebody reads");
    }
}
