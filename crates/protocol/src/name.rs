//! The names of teams and agents, parsed once at the edge.
//!
//! Inside nobody validates strings: a [`TeamName`] is always a safe directory name. An [`AgentName`] may be
//! anybody's, since others' files are never refused for a name in them; only [`AgentName::file_stem`] may
//! become part of a path, and it can't leave its directory.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// The longest name of a team or of an agent of ours, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

const LEAD_NAME: &str = "team-lead";
const RESERVED_NAMES: [&str; 4] = [LEAD_NAME, "user", "system", "task-list"];

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing, or nothing but dashes.
    #[error("cannot use {0:?} as a team's name: it needs at least one letter or digit")]
    NoLetter(String),
    /// A team's name outside `[a-z0-9-]{1,64}`.
    #[error("cannot use {0:?} as a team's name: it takes 1 to 64 of a-z, 0-9 and dash")]
    Team(String),
    /// An agent's name outside `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`.
    #[error(
        "cannot use {0:?} as an agent's name: it takes a letter or digit, then up to 63 of A-Z, a-z, 0-9, _ and -"
    )]
    Agent(String),
}

/// A team's name: 1 to 64 of `[a-z0-9-]`, not only dashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TeamName(String);

impl TeamName {
    /// Takes the name as it is, or refuses it.
    pub fn parse(text: &str) -> Result<TeamName, NameError> {
        if text.bytes().all(|b| b == b'-') {
            return Err(NameError::NoLetter(clip(text)));
        }
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if text.len() > MAX_NAME_BYTES || !text.bytes().all(fits) {
            return Err(NameError::Team(clip(text)));
        }
        Ok(TeamName(text.to_owned()))
    }

    /// Makes a name of what somebody asked for: each character outside `[a-zA-Z0-9]` becomes a dash, the
    /// rest lower case. The caller tells the person where that changed something.
    pub fn sanitize(wanted: &str) -> Result<TeamName, NameError> {
        let mut name = String::new();
        for c in wanted.chars() {
            if c.is_ascii_alphanumeric() {
                name.push(c.to_ascii_lowercase());
            } else {
                // The original works on UTF-16 units: a character beyond the first plane is two dashes.
                name.push_str(&"--"[..c.len_utf16()]);
            }
        }
        TeamName::parse(&name).map_err(|error| match error {
            NameError::NoLetter(_) => NameError::NoLetter(clip(wanted)),
            _ => NameError::Team(clip(wanted)),
        })
    }

    /// True for `session-*`: such a team is Claude Code's own, and read-only for us.
    pub fn is_claude_session(&self) -> bool {
        self.0.starts_with("session-")
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name in `NAME` or `NAME@TEAM`, the team in any case. With another team behind it, it is no name here: its namesake
/// is not meant.
pub fn strip_team<'a>(address: &'a str, team: &TeamName) -> &'a str {
    match address.rsplit_once('@') {
        Some((name, of)) if of.eq_ignore_ascii_case(team.as_str()) => name,
        _ => address,
    }
}

/// An agent's name: equal, ordered and hashed without regard to ASCII case, spelled as it was given.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// A name of ours: `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`. Deserialising asks the same.
    pub fn parse(text: &str) -> Result<AgentName, NameError> {
        let starts = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !starts || text.len() > MAX_NAME_BYTES || !text.bytes().all(fits) {
            return Err(NameError::Agent(clip(text)));
        }
        Ok(AgentName(text.to_owned()))
    }

    /// A name from somebody else's file, as it stands.
    pub fn new_unchecked(text: &str) -> AgentName {
        AgentName(text.to_owned())
    }

    /// The lead of every team.
    pub fn lead() -> AgentName {
        AgentName(LEAD_NAME.to_owned())
    }

    /// True for the lead.
    pub fn is_lead(&self) -> bool {
        self.0.eq_ignore_ascii_case(LEAD_NAME)
    }

    /// True for the names that no teammate may take.
    pub fn is_reserved(&self) -> bool {
        RESERVED_NAMES.iter().any(|name| self.0.eq_ignore_ascii_case(name))
    }

    /// The name of its file without `.json`: `@`, path separators, controls and a leading dot become `-`,
    /// so that it stays in its directory whatever a foreign file says.
    pub fn file_stem(&self) -> String {
        let safe = |c: char| if matches!(c, '@' | '/' | '\\') || c.is_control() { '-' } else { c };
        let stem: String = self.0.chars().map(safe).collect();
        match stem.strip_prefix('.') {
            Some(rest) => format!("-{rest}"),
            None if stem.is_empty() => "-".to_owned(),
            None => stem,
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn lowercase_bytes(&self) -> impl Iterator<Item = u8> {
        self.0.bytes().map(|b| b.to_ascii_lowercase())
    }
}

impl PartialEq for AgentName {
    fn eq(&self, other: &AgentName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for AgentName {}

impl Ord for AgentName {
    fn cmp(&self, other: &AgentName) -> Ordering {
        self.lowercase_bytes().cmp(other.lowercase_bytes())
    }
}

impl PartialOrd for AgentName {
    fn partial_cmp(&self, other: &AgentName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for AgentName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lowercase_bytes().for_each(|b| b.hash(state));
    }
}

macro_rules! impl_string_name {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<$name, NameError> {
                $name::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<$name, NameError> {
                $name::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

impl_string_name!(TeamName);
impl_string_name!(AgentName);

/// Enough of a refused name to know it again.
fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_team_is_sanitized_as_the_original_does() {
        for (wanted, name) in [("My Team!", "my-team-"), ("a_b.c", "a-b-c"), ("x🪜y", "x--y"), ("é1", "-1")]
        {
            assert_eq!(TeamName::sanitize(wanted).unwrap().as_str(), name);
        }
        for refused in ["", "---", "___", "🪜"] {
            assert!(matches!(TeamName::sanitize(refused), Err(NameError::NoLetter(_))), "{refused}");
        }
        assert!(TeamName::sanitize(&"a".repeat(65)).is_err());
    }

    #[test]
    fn a_team_is_parsed_strictly() {
        assert!(TeamName::parse(&"a".repeat(64)).is_ok());
        for refused in ["A", "a/b", "..", "a_b", "", "-", "a\0", "é", &"a".repeat(65)] {
            assert!(TeamName::parse(refused).is_err(), "{refused}");
        }
        assert!(TeamName::parse("session-1234abcd").unwrap().is_claude_session());
    }

    #[test]
    fn an_agent_of_ours_is_parsed_strictly() {
        for taken in ["a", "Worker_2", "9-x", &"a".repeat(64)] {
            assert!(AgentName::parse(taken).is_ok(), "{taken}");
        }
        for refused in ["", "-a", "_a", "a/b", "..", "a@b", "a b", "é", "a\n", &"a".repeat(65)] {
            assert!(AgentName::parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_foreign_name_never_leaves_the_inbox_directory() {
        for (name, stem) in [("a@b", "a-b"), ("../../x", "-.-..-x"), ("..", "-."), ("", "-"), ("a\0b", "a-b")]
        {
            assert_eq!(AgentName::new_unchecked(name).file_stem(), stem);
        }
    }

    #[test]
    fn case_does_not_tell_agents_apart() {
        let (a, b) = (AgentName::parse("Bob").unwrap(), AgentName::parse("bob").unwrap());
        assert_eq!(a, b);
        assert_eq!(a.cmp(&b), Ordering::Equal);
        assert_eq!(HashSet::from([a.clone(), b]).len(), 1);
        assert_eq!(a.to_string(), "Bob");
        assert!(AgentName::new_unchecked("TEAM-LEAD").is_lead());
        assert!(AgentName::new_unchecked("User").is_reserved());
    }
}
