//! Names of teams and members, checked when they are parsed.
//!
//! A [`TeamName`] is always a safe directory name. A [`MemberName`] may be any text, because
//! [`MemberName::new_unchecked`] accepts every name that another program has written to a file. So
//! only [`MemberName::file_stem`], whose result is a safe file name, may become part of a path.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// Maximum length of a team's name or of a name that teamd gives a member, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

const LEAD_NAME: &str = "team-lead";
const RESERVED_NAMES: [&str; 4] = [LEAD_NAME, "user", "system", "task-list"];

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The team name is empty or has only dashes.
    #[error("cannot use {0:?} as a team's name: it needs at least one letter or digit")]
    NoLetter(String),
    /// The team name is not `[a-z0-9-]{1,64}`.
    #[error("cannot use {0:?} as a team's name: it takes 1 to 64 of a-z, 0-9 and dash")]
    Team(String),
    /// The member name is not `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`.
    #[error(
        "cannot use {0:?} as an agent's name: it takes a letter or digit, then up to 63 of A-Z, a-z, 0-9, _ and -"
    )]
    Member(String),
}

/// Name of a team: 1 to 64 of `[a-z0-9-]`, at least one of them not a dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TeamName(String);

impl TeamName {
    /// Parses a name. An invalid name is an error and is not changed.
    pub fn parse(text: &str) -> Result<TeamName, NameError> {
        if text.bytes().all(|b| b == b'-') {
            return Err(NameError::NoLetter(clip(text)));
        }
        let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if text.len() > MAX_NAME_BYTES || !text.bytes().all(is_allowed) {
            return Err(NameError::Team(clip(text)));
        }
        Ok(TeamName(text.to_owned()))
    }

    /// Converts a user's text to a valid name. Each character outside of `[a-zA-Z0-9]` becomes a
    /// dash, and letters become lower case. The caller tells the user if the name differs from the
    /// text.
    pub fn sanitize(wanted: &str) -> Result<TeamName, NameError> {
        let mut name = String::new();
        for c in wanted.chars() {
            if c.is_ascii_alphanumeric() {
                name.push(c.to_ascii_lowercase());
            } else {
                // Claude Code replaces UTF-16 units: a character above U+FFFF becomes two dashes.
                name.push_str(&"--"[..c.len_utf16()]);
            }
        }
        TeamName::parse(&name).map_err(|error| match error {
            NameError::NoLetter(_) => NameError::NoLetter(clip(wanted)),
            _ => NameError::Team(clip(wanted)),
        })
    }

    /// Whether this is a session team (`session-*`), which a Claude Code session created for
    /// itself. teamd only appends messages to the inboxes of such a team, and changes none of its
    /// other files.
    pub fn is_claude_session(&self) -> bool {
        self.0.starts_with("session-")
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The member's name in `address`, which is `NAME` or `NAME@TEAM`. If `address` names another team
/// than `team`, it is returned unchanged, so that it matches no member of `team`. Team names are
/// compared without case.
pub fn strip_team<'a>(address: &'a str, team: &TeamName) -> &'a str {
    match address.rsplit_once('@') {
        Some((name, address_team)) if address_team.eq_ignore_ascii_case(team.as_str()) => name,
        _ => address,
    }
}

/// Name of a member. Comparison, order and hash ignore ASCII case; the spelling is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberName(String);

impl MemberName {
    /// Parses a name that teamd accepts for a new member: `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`.
    /// Deserialization uses the same check.
    pub fn parse(text: &str) -> Result<MemberName, NameError> {
        let has_valid_start = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !has_valid_start || text.len() > MAX_NAME_BYTES || !text.bytes().all(is_allowed) {
            return Err(NameError::Member(clip(text)));
        }
        Ok(MemberName(text.to_owned()))
    }

    /// Takes a name from another program's file without a check.
    pub fn new_unchecked(text: &str) -> MemberName {
        MemberName(text.to_owned())
    }

    /// The name of the lead of every team.
    pub fn lead() -> MemberName {
        MemberName(LEAD_NAME.to_owned())
    }

    /// Whether the name is that of the lead.
    pub fn is_lead(&self) -> bool {
        self.0.eq_ignore_ascii_case(LEAD_NAME)
    }

    /// Whether no teammate may have the name.
    pub fn is_reserved(&self) -> bool {
        RESERVED_NAMES.iter().any(|name| self.0.eq_ignore_ascii_case(name))
    }

    /// The name as a safe file name, without `.json`. `@`, path separators, control characters and
    /// a leading dot become `-`, so that a file of this name stays in its directory.
    pub fn file_stem(&self) -> String {
        let replace_unsafe = |c: char| if matches!(c, '@' | '/' | '\\') || c.is_control() { '-' } else { c };
        let stem: String = self.0.chars().map(replace_unsafe).collect();
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

impl PartialEq for MemberName {
    fn eq(&self, other: &MemberName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for MemberName {}

impl Ord for MemberName {
    fn cmp(&self, other: &MemberName) -> Ordering {
        self.lowercase_bytes().cmp(other.lowercase_bytes())
    }
}

impl PartialOrd for MemberName {
    fn partial_cmp(&self, other: &MemberName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for MemberName {
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
impl_string_name!(MemberName);

/// The first 80 characters of an invalid name, for error messages.
fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn team_name_is_sanitized_as_in_claude_code() {
        for (wanted, name) in [("My Team!", "my-team-"), ("a_b.c", "a-b-c"), ("x🪜y", "x--y"), ("é1", "-1")]
        {
            assert_eq!(TeamName::sanitize(wanted).unwrap().as_str(), name);
        }
        for invalid in ["", "---", "___", "🪜"] {
            assert!(matches!(TeamName::sanitize(invalid), Err(NameError::NoLetter(_))), "{invalid}");
        }
        assert!(TeamName::sanitize(&"a".repeat(65)).is_err());
    }

    #[test]
    fn invalid_team_names_are_refused() {
        assert!(TeamName::parse(&"a".repeat(64)).is_ok());
        for invalid in ["A", "a/b", "..", "a_b", "", "-", "a\0", "é", &"a".repeat(65)] {
            assert!(TeamName::parse(invalid).is_err(), "{invalid}");
        }
        assert!(TeamName::parse("session-1234abcd").unwrap().is_claude_session());
    }

    #[test]
    fn invalid_member_names_are_refused() {
        for valid in ["a", "Worker_2", "9-x", &"a".repeat(64)] {
            assert!(MemberName::parse(valid).is_ok(), "{valid}");
        }
        for invalid in ["", "-a", "_a", "a/b", "..", "a@b", "a b", "é", "a\n", &"a".repeat(65)] {
            assert!(MemberName::parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn file_stem_stays_in_its_directory() {
        for (name, stem) in [("a@b", "a-b"), ("../../x", "-.-..-x"), ("..", "-."), ("", "-"), ("a\0b", "a-b")]
        {
            assert_eq!(MemberName::new_unchecked(name).file_stem(), stem);
        }
    }

    #[test]
    fn names_are_compared_without_case() {
        let (a, b) = (MemberName::parse("Bob").unwrap(), MemberName::parse("bob").unwrap());
        assert_eq!(a, b);
        assert_eq!(a.cmp(&b), Ordering::Equal);
        assert_eq!(HashSet::from([a.clone(), b]).len(), 1);
        assert_eq!(a.to_string(), "Bob");
        assert!(MemberName::new_unchecked("TEAM-LEAD").is_lead());
        assert!(MemberName::new_unchecked("User").is_reserved());
    }
}
