//! Ids of members, tasks and requests, and the timestamps in new request ids.
//!
//! The text of a request id has no meaning for teamd, which only compares whole ids and shows them
//! to people. New request ids contain the current time in milliseconds. [`UniqueMillis`] makes sure
//! that two ids of one process contain different times.

use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a text is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is not `NAME@TEAM`.
    #[error("cannot read agent id {0:?}: it should be NAME@TEAM")]
    Agent(String),
    /// The text is not `[1-9][0-9]{0,8}`.
    #[error("cannot read task id {0:?}: it should be a number from 1 to 999999999")]
    Task(String),
    /// The text is empty, too long or has control characters.
    #[error("cannot read request id {0:?}: it should be 1 to 256 printable characters")]
    Request(String),
}

/// Id of a team member, written `NAME@TEAM`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId {
    /// The member's name.
    pub name: MemberName,
    /// The member's team.
    pub team: TeamName,
}

impl AgentId {
    /// Parses an id. The first `@` separates name and team. The name is not checked.
    pub fn parse(text: &str) -> Result<AgentId, IdError> {
        let unreadable = || IdError::Agent(text.chars().take(200).collect());
        let (name, team) = text.split_once('@').ok_or_else(unreadable)?;
        let team = TeamName::parse(team).map_err(|_| unreadable())?;
        Ok(AgentId { name: MemberName::new_unchecked(name), team })
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.team)
    }
}

/// Number of a task. In JSON a string of decimal digits. Ordered by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(u32);

impl TaskId {
    /// The largest valid number.
    pub const MAX: u32 = 999_999_999;

    /// Parses `[1-9][0-9]{0,8}`.
    pub fn parse(text: &str) -> Result<TaskId, IdError> {
        let digits = !text.starts_with('0') && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(TaskId(number)),
            _ => Err(IdError::Task(text.chars().take(80).collect())),
        }
    }

    /// The id with this number. `None` if the number is 0 or greater than [`TaskId::MAX`].
    pub fn from_number(number: u32) -> Option<TaskId> {
        (1..=TaskId::MAX).contains(&number).then_some(TaskId(number))
    }

    /// The id as a number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Id of a request. Ids that other programs made are kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequestId(String);

impl RequestId {
    /// Id of a shutdown request to `agent`. `ms` is from a [`UniqueMillis`].
    pub fn shutdown(ms: u64, agent: &MemberName) -> RequestId {
        RequestId(format!("shutdown-{ms}@{agent}"))
    }

    /// Id of a plan that `agent` submitted at `ms`. `ms` is from a [`UniqueMillis`].
    pub fn plan(ms: u64, agent: &MemberName, team: &TeamName) -> RequestId {
        RequestId(format!("plan_approval-{ms}@{agent}@{team}"))
    }

    /// Id of a permission request that is made at `ms`, in milliseconds since the epoch. `suffix`
    /// is a random number; the id has it as 7 characters of `a-z0-9`.
    pub fn permission(ms: u64, suffix: u64) -> RequestId {
        let digit =
            |place: u32| char::from_digit((suffix / 36_u64.pow(place) % 36) as u32, 36).unwrap_or('0');
        let suffix: String = (0..7).map(digit).collect();
        RequestId(format!("perm-{ms}-{suffix}"))
    }

    /// Parses an id of 1 to 256 characters without control characters.
    pub fn parse(text: &str) -> Result<RequestId, IdError> {
        if text.is_empty() || text.chars().count() > 256 || text.chars().any(char::is_control) {
            return Err(IdError::Request(text.chars().take(80).collect()));
        }
        Ok(RequestId(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

macro_rules! impl_string_id {
    ($name:ident) => {
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<$name, IdError> {
                $name::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<$name, IdError> {
                $name::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

impl_string_id!(TaskId);
impl_string_id!(RequestId);

/// Source of strictly increasing milliseconds for ids. Each process has one, in a `static`.
#[derive(Debug, Default)]
pub struct UniqueMillis(AtomicU64);

impl UniqueMillis {
    /// A source that has returned no millisecond yet.
    pub const fn new() -> UniqueMillis {
        UniqueMillis(AtomicU64::new(0))
    }

    /// Returns `now_ms`, or the next millisecond that this source has not returned yet.
    pub fn next(&self, now_ms: u64) -> u64 {
        let later = |last: u64| now_ms.max(last.saturating_add(1));
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last))) {
            Ok(last) | Err(last) => later(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_id_is_split_at_the_first_at_sign() {
        let id = AgentId::parse("ann@orchard").unwrap();
        assert_eq!((id.name.as_str(), id.team.as_str()), ("ann", "orchard"));
        assert_eq!(id.to_string(), "ann@orchard");
        assert!(AgentId::parse("ann").is_err());
        assert!(AgentId::parse("ann@x@y").is_err());
    }

    #[test]
    fn task_ids_are_numbers() {
        assert!(TaskId::parse("10").unwrap() > TaskId::parse("9").unwrap());
        for invalid in ["", "0", "01", "+1", "-1", "1x", "1000000000", "../1", "１"] {
            assert!(TaskId::parse(invalid).is_err(), "{invalid}");
        }
        assert_eq!(serde_json::to_string(&TaskId::parse("7").unwrap()).unwrap(), "\"7\"");
    }

    #[test]
    fn request_ids_have_the_format_of_claude_code() {
        let agent = MemberName::parse("ann").unwrap();
        let team = TeamName::parse("orchard").unwrap();
        assert_eq!(RequestId::shutdown(5, &agent).as_str(), "shutdown-5@ann");
        let plan = RequestId::plan(5, &agent, &team);
        assert_eq!(plan.as_str(), "plan_approval-5@ann@orchard");
        let id = RequestId::permission(5, u64::MAX);
        let suffix = id.as_str().strip_prefix("perm-5-").unwrap();
        assert!(suffix.len() == 7 && suffix.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
        assert!(RequestId::parse("a\nb").is_err());
    }

    #[test]
    fn milliseconds_are_unique() {
        let millis = UniqueMillis::new();
        assert_eq!([millis.next(10), millis.next(10), millis.next(5), millis.next(20)], [10, 11, 12, 20]);
    }
}
