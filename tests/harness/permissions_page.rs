//! The tables of docs/permissions.md.

use crate::TestEnv;
use serde_json::Value;

/// The commands of docs/permissions.md that neither read nor change a team or the daemon.
pub const COMMANDS_WITHOUT_TEAM: [&str; 9] = [
    "help",
    "profiles",
    "setup PROFILE",
    "mcp",
    "instructions",
    "notify TEXT",
    "completions bash",
    "man DIR",
    "doctor",
];

const PAGE: &str = include_str!("../../docs/permissions.md");

/// A request of each kind, one per line, about the member bob of the team survey.
pub const REQUESTS: &str = include_str!("../../crates/protocol/tests/data/requests.jsonl");

/// The rows of the table `commands`, `tools` or `requests`: the callers, and the operations.
///
/// # Panics
/// If the page has no such table.
pub fn documented_permissions(table: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let table =
        PAGE.split(&format!("<!-- permissions: {table} -->\n")).nth(1).expect("the page has the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let (callers, operations) = row.trim_matches('|').split_once('|').expect("a row has two cells");
        (callers.trim(), operations.trim().split(", ").map(|name| name.trim_matches('`')).collect())
    })
    .collect()
}

/// The name of a request.
pub fn request_name(request: &Value) -> &str {
    let key = || request.as_object()?.keys().next().map(String::as_str);
    request.as_str().or_else(key).expect("a request has a name")
}

impl TestEnv {
    /// The words of a command line of the page. `name` replaces NAME. The other arguments name
    /// nothing that exists, so that a command that is permitted changes little.
    pub fn documented_command(&self, command: &str, name: &str) -> Vec<String> {
        let word = |word: &str| match word {
            "NAME" => name.to_owned(),
            "ID" => "99".to_owned(),
            "FILE" => "missing.file".to_owned(),
            "DIR" => self.path("out/man").display().to_string(),
            "PROFILE" => "codex".to_owned(),
            "TEAM" => "missing".to_owned(),
            other => other.to_owned(),
        };
        let timeout = if command.ends_with("wait") { "--timeout 1ms" } else { "" };
        command.split(' ').chain(timeout.split_whitespace()).map(word).collect()
    }
}
