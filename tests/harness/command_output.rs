//! The output and exit code of a finished program.

use serde_json::Value;

/// The result of a finished program. A test must check it.
#[derive(Debug, Clone)]
#[must_use = "check the code or the output, or call expect_success()"]
pub struct CommandOutput {
    /// The command line, for failure messages.
    pub command: String,
    /// The exit code, or 128 + n if signal n ended the program.
    pub code: i32,
    /// The standard output.
    pub stdout: String,
    /// The standard error output.
    pub stderr: String,
}

impl CommandOutput {
    /// Returns the standard output of a program that has succeeded.
    ///
    /// # Panics
    /// If the exit code is not 0.
    pub fn expect_success(self) -> String {
        assert_eq!(self.code, 0, "{self:#?}");
        self.stdout
    }

    /// Returns the standard error output of a program that has failed with this exit code.
    ///
    /// # Panics
    /// If the exit code differs, or if standard error does not begin with the name of a program of
    /// teamd.
    pub fn expect_failure(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.stderr.starts_with("team"), "no error message on stderr: {self:#?}");
        self.stderr
    }

    /// Returns the standard output as JSON, whatever the exit code is.
    ///
    /// # Panics
    /// If the standard output is not JSON.
    pub fn json(self) -> Value {
        serde_json::from_str(self.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}
