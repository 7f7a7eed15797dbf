//! The ids of agents, tasks and requests, and where fresh request ids come from.
//!
//! A request id is a key, not a message: what it says is read for showing alone, and whether a request is
//! open is known from the request itself. Two requests of one process never share a millisecond.

use crate::name::{AgentName, TeamName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not `NAME@TEAM`.
    #[error("cannot read agent id {0:?}: it should be NAME@TEAM")]
    Agent(String),
    /// Not `[1-9][0-9]{0,8}`.
    #[error("cannot read task id {0:?}: it should be a number from 1 to 999999999")]
    Task(String),
    /// Empty, too long or unprintable.
    #[error("cannot read request id {0:?}: it should be 1 to 256 printable characters")]
    Request(String),
}

/// A member of a team, as others write it: `NAME@TEAM`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId {
    /// Who.
    pub name: AgentName,
    /// Of which team.
    pub team: TeamName,
}

impl AgentId {
    /// Reads an id, split at the first `@`; the name is taken as it stands.
    pub fn parse(text: &str) -> Result<AgentId, IdError> {
        let unreadable = || IdError::Agent(text.chars().take(200).collect());
        let (name, team) = text.split_once('@').ok_or_else(unreadable)?;
        let team = TeamName::parse(team).map_err(|_| unreadable())?;
        Ok(AgentId { name: AgentName::new_unchecked(name), team })
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.team)
    }
}

/// A task's number, written as a decimal string; ordered by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(u32);

impl TaskId {
    /// The largest number that an id may be.
    pub const MAX: u32 = 999_999_999;

    /// Reads `[1-9][0-9]{0,8}`.
    pub fn parse(text: &str) -> Result<TaskId, IdError> {
        let digits = !text.starts_with('0') && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(TaskId(number)),
            _ => Err(IdError::Task(text.chars().take(80).collect())),
        }
    }

    /// The id of that number, if it is one.
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

/// The id of a request; others' are taken as they stand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequestId(String);

impl RequestId {
    /// A shutdown request to `agent`, made at `ms` (from a `UniqueMillis`).
    pub fn shutdown(ms: u64, agent: &AgentName) -> RequestId {
        RequestId(format!("shutdown-{ms}@{agent}"))
    }

    /// A plan by `agent`, handed in at `ms`.
    pub fn plan(ms: u64, agent: &AgentName, team: &TeamName) -> RequestId {
        RequestId(format!("plan_approval-{ms}@{agent}@{team}"))
    }

    /// A question for permission, asked at `ms`; `suffix` is any randomness, brought into 7 of `a-z0-9`.
    pub fn permission(ms: u64, suffix: u64) -> RequestId {
        let digit =
            |place: u32| char::from_digit((suffix / 36_u64.pow(place) % 36) as u32, 36).unwrap_or('0');
        let suffix: String = (0..7).map(digit).collect();
        RequestId(format!("perm-{ms}-{suffix}"))
    }

    /// Takes any id that can be shown: 1 to 256 characters without controls.
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

/// Hands out milliseconds for ids, each later than the one before. One per process, as a `static`.
#[derive(Debug, Default)]
pub struct UniqueMillis(AtomicU64);

impl UniqueMillis {
    /// A mint that has handed out nothing.
    pub const fn new() -> UniqueMillis {
        UniqueMillis(AtomicU64::new(0))
    }

    /// `now_ms`, or the next millisecond that this mint has not handed out.
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
    fn an_agent_id_is_split_at_the_first_at() {
        let id = AgentId::parse("ann@orchard").unwrap();
        assert_eq!((id.name.as_str(), id.team.as_str()), ("ann", "orchard"));
        assert_eq!(id.to_string(), "ann@orchard");
        assert!(AgentId::parse("ann").is_err());
        assert!(AgentId::parse("ann@x@y").is_err());
    }

    #[test]
    fn task_ids_are_numbers() {
        assert!(TaskId::parse("10").unwrap() > TaskId::parse("9").unwrap());
        for refused in ["", "0", "01", "+1", "-1", "1x", "1000000000", "../1", "１"] {
            assert!(TaskId::parse(refused).is_err(), "{refused}");
        }
        assert_eq!(serde_json::to_string(&TaskId::parse("7").unwrap()).unwrap(), "\"7\"");
    }

    #[test]
    fn request_ids_look_like_the_originals() {
        let agent = AgentName::parse("ann").unwrap();
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
    fn a_mint_never_hands_out_a_millisecond_twice() {
        let mint = UniqueMillis::new();
        assert_eq!([mint.next(10), mint.next(10), mint.next(5), mint.next(20)], [10, 11, 12, 20]);
    }
}
