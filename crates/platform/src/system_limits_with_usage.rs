//! Limits of the system, with what a person can do about them.

/// A limit and how much of it is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLimit {
    /// What is limited, such as `pseudo-terminals (kernel.pty.max)`.
    pub what: String,
    /// How many are in use.
    pub used: u64,
    /// How many are allowed.
    pub allowed: u64,
    /// How a person raises the limit.
    pub remedy: String,
}

impl ResourceLimit {
    /// Whether at least 98 % of the allowed number is in use. Such a limit may be why a process
    /// could not be started, although a few units are free: one start can need several.
    pub fn is_nearly_reached(&self) -> bool {
        self.used + self.allowed / 50 >= self.allowed
    }

    /// A sentence part: `4096 of 4096 pseudo-terminals (kernel.pty.max) are in use`.
    pub fn usage_text(&self) -> String {
        format!("{} of {} {} are in use", self.used, self.allowed, self.what)
    }
}

/// A limit of watched files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchLimit {
    /// The name of the setting, such as `max_user_watches`.
    pub name: &'static str,
    /// The smallest number with which the daemon, commands and some other programs work together.
    pub minimum: u64,
    /// The file that has the number.
    pub path: String,
    /// The text in the file, which should be a number.
    pub text: String,
    /// The setting as `sysctl` takes it.
    pub setting: String,
}
