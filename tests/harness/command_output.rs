//! What a program said and how it ended.

use serde_json::Value;

/// A finished program. What a test does with it is part of the test.
#[derive(Debug)]
#[must_use = "look at the code or the output, or call ok()"]
pub struct CommandOutput {
    /// What was run, for messages.
    pub command: String,
    /// Its exit code; 128 + n for signal n.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
}

impl CommandOutput {
    /// The output of a success.
    ///
    /// # Panics
    /// Where it was none.
    pub fn expect_success(self) -> String {
        assert_eq!(self.code, 0, "{self:#?}");
        self.stdout
    }

    /// The complaint of a failure with this code.
    ///
    /// # Panics
    /// Where it ended otherwise, or complained of nothing.
    pub fn expect_failure(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.stderr.starts_with("team"), "no sentence on stderr: {self:#?}");
        self.stderr
    }

    /// The object it printed, whatever its exit code.
    ///
    /// # Panics
    /// Where it printed none.
    pub fn json(self) -> Value {
        serde_json::from_str(self.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}
