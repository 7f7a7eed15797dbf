//! The protocol by which `teamctl hosts check` asks another machine about its tmux, daemon and
//! agent programs. The command starts `teamctl hosts report` there.
//!
//! `hosts report` first prints one line with its release. `hosts check` compares this release with
//! its own before it sends anything. Then it sends one request per line, and `hosts report` prints
//! one answer per line. Requests and answers are JSON.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The beginning of the line with the release. Other programs may print lines before this line, for
/// example the start file of a login shell.
const HELLO: &str = "teamd-host ";

/// The line with the release, without its newline.
pub fn hello_line(version: &str) -> String {
    format!("{HELLO}{version}")
}

/// The release in `line`. `None` if another program has printed the line.
pub fn parse_hello_line(line: &str) -> Option<&str> {
    line.strip_prefix(HELLO).map(str::trim).filter(|version| !version.is_empty())
}

/// What the caller asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum HostRequest {
    /// An answer without work, which measures the connection and the clock.
    Ping,
    /// What the host has.
    Report {
        /// The root there, as in the hosts file. `None`: the default there.
        root: Option<String>,
    },
}

/// The answer to a [`HostRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum HostAnswer {
    /// To [`HostRequest::Ping`]: the host's clock, in ms since the Unix epoch.
    Pong {
        /// The time on the host.
        now: u64,
    },
    /// To [`HostRequest::Report`].
    Report(Box<HostReport>),
    /// The request failed on the host.
    Failed {
        /// Why, for people.
        message: String,
    },
}

/// What a host has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// The root there, canonical.
    pub root: PathBuf,
    /// The first line of `tmux -V`. `None` if there is no tmux.
    pub tmux: Option<String>,
    /// The daemon of the root. `None` if none runs.
    pub daemon: Option<RunningDaemon>,
    /// The installed agent programs.
    pub programs: Vec<InstalledProgram>,
}

/// A running daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningDaemon {
    /// Its process id.
    pub pid: u32,
    /// Its release.
    pub version: String,
}

/// An agent program that is installed on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledProgram {
    /// The program, as its profiles name it.
    pub program: String,
    /// Where it is.
    pub path: PathBuf,
    /// The line with its version. `None` if the program did not print one.
    pub version: Option<String>,
    /// Whether its user is logged in.
    pub login: LoginState,
}

/// Whether the user of an agent program is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// The program says so.
    LoggedIn,
    /// The program says that it is not.
    LoggedOut,
    /// The profile does not say how to ask, or the program cannot answer.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_line_is_told_from_other_output() {
        assert_eq!(parse_hello_line(&hello_line("0.1.0")), Some("0.1.0"));
        for line in ["", "Welcome to devbox", "teamd-host", "teamd-host ", " teamd-host 0.1.0", "0.1.0"] {
            assert_eq!(parse_hello_line(line), None, "{line}");
        }
    }

    #[test]
    fn requests_and_answers_survive_a_round_trip() {
        let request = HostRequest::Report { root: Some("~/r\n".to_owned()) };
        let text = serde_json::to_string(&request).unwrap();
        assert!(!text.contains('\n'), "{text}");
        assert_eq!(serde_json::from_str::<HostRequest>(&text).unwrap(), request);
        let pong: HostAnswer = serde_json::from_str(r#"{"answer": "pong", "now": 5, "later": 1}"#).unwrap();
        assert_eq!(pong, HostAnswer::Pong { now: 5 });
    }
}
