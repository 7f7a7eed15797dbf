//! What of an answer the program of a member can follow, as far as the daemon's roster tells. What it does not tell is
//! not known, and refused by nobody.

use crate::asked::{Answer, Asked};
use crate::feed::Feed;
use crate::mode::PermissionMode;
use crate::name::{AgentName, TeamName};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The part of the roster that tells it.
#[derive(Debug, Default, Deserialize)]
pub struct Abilities {
    #[serde(default)]
    agents: Vec<Recorded>,
}

#[derive(Debug, Deserialize)]
struct Recorded {
    team: TeamName,
    name: AgentName,
    feed: Feed,
    #[serde(default)]
    modes: Vec<String>,
    #[serde(default)]
    comeback: Option<Further>,
    #[serde(default)]
    ended: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Further {
    order: Ordered,
}

#[derive(Debug, Deserialize)]
struct Ordered {
    #[serde(default)]
    approved: BTreeMap<String, IgnoredAny>,
}

/// What the program of one member can follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ability {
    /// The permission modes in which it could carry out a plan; none: not known.
    modes: Option<Vec<String>>,
    /// It can't be given another input for a tool than its own.
    own_input: bool,
}

/// Why an answer can't be followed, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    /// Completes "cannot answer … like that: ".
    pub why: String,
    /// What can be done.
    pub hint: String,
}

impl Abilities {
    /// The roster's file in the state directory.
    pub const FILE: &str = "roster.json";

    /// What a roster tells; of one that is missing or can't be read nothing is known.
    pub fn of_bytes(bytes: Option<&[u8]>) -> Abilities {
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// Of the one who lives under that name.
    pub fn member(&self, team: &TeamName, name: &AgentName) -> Ability {
        let lives = |agent: &&Recorded| agent.team == *team && agent.name == *name && agent.ended.is_none();
        self.agents.iter().rev().find(lives).map_or_else(Ability::default, Recorded::ability)
    }
}

impl Recorded {
    fn ability(&self) -> Ability {
        let further = || self.comeback.iter().flat_map(|comeback| comeback.order.approved.keys().cloned());
        let modes: Vec<String> = match self.feed {
            Feed::Native => Vec::new(),
            Feed::Turn | Feed::Acp => self.modes.clone(),
            Feed::Hook | Feed::Keys | Feed::Pull => further().collect(),
        };
        Ability { modes: Some(modes).filter(|modes| !modes.is_empty()), own_input: self.feed == Feed::Acp }
    }
}

impl Ability {
    /// Whether it could not follow that answer.
    pub fn refuses(&self, asked: &Asked, answer: &Answer) -> Option<Beyond> {
        let Answer::Approve(yes) = answer else { return None };
        match asked {
            Asked::Plan(plan) => {
                let mode = yes.mode.filter(|mode| self.followed(*mode) != *mode)?;
                let why = format!("the program of {} has no mode {mode}", plan.from);
                Some(Beyond { why, hint: format!("it has: {}", self.listed()) })
            }
            Asked::Permission(request) => {
                let other = yes.input.as_ref().filter(|input| is_another(&request.input, input));
                other.filter(|_| self.own_input).map(|_| Beyond {
                    why: format!("the program of {} takes no other input than its own", request.agent_id),
                    hint: "approve it as it stands, or say what to do instead: teamctl deny ID --reason R"
                        .to_owned(),
                })
            }
        }
    }

    /// The mode in which it carries out a plan that was approved in this one.
    pub fn followed(&self, mode: PermissionMode) -> PermissionMode {
        let has = |modes: &Vec<String>| modes.iter().any(|known| known == mode.word());
        if self.modes.as_ref().is_none_or(has) { mode } else { PermissionMode::Default }
    }

    fn listed(&self) -> String {
        let named = self.modes.iter().flatten().map(String::as_str);
        let named = named.filter(|mode| !["plan", "default"].contains(mode));
        std::iter::once("default").chain(named).collect::<Vec<_>>().join(", ")
    }
}

/// An input that says nothing leaves the request's own.
pub fn is_another(input: &Value, given: &Value) -> bool {
    let none = given.is_null() || given.as_object().is_some_and(Map::is_empty);
    !none && input != given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::Approval;
    use serde_json::json;

    fn of(agent: Value) -> Ability {
        let mut record = json!({"team": "survey", "name": "ann", "token": "t"});
        record.as_object_mut().unwrap().extend(agent.as_object().unwrap().clone());
        let bytes = json!({"version": 1, "agents": [record]}).to_string();
        let team = TeamName::parse("survey").unwrap();
        Abilities::of_bytes(Some(bytes.as_bytes())).member(&team, &AgentName::foreign("ann"))
    }

    fn refuses(ability: &Ability, asked: Value, approval: Approval) -> Option<String> {
        let asked = Asked::parse(&asked.to_string()).unwrap();
        ability.refuses(&asked, &Answer::Approve(approval)).map(|beyond| beyond.hint)
    }

    fn plan(ability: &Ability, mode: PermissionMode) -> Option<String> {
        let asked = json!({"type": "plan_approval_request", "from": "ann", "timestamp": "", "planFilePath": "p",
            "planContent": "c", "requestId": "plan-1"});
        refuses(ability, asked, Approval { mode: Some(mode), ..Approval::default() })
    }

    #[test]
    fn a_mode_that_the_program_has_not_is_refused_and_none_that_is_not_known() {
        let modes = ["plan", "acceptEdits"];
        let life = json!({"order": {"approved": {"default": {}, "acceptEdits": {}}, "argv": []}});
        for agent in [
            json!({"feed": "turn", "modes": modes}),
            json!({"feed": "acp", "modes": modes}),
            json!({"feed": "hook", "comeback": life}),
        ] {
            let ability = of(agent);
            assert_eq!(
                plan(&ability, PermissionMode::DontAsk).as_deref(),
                Some("it has: default, acceptEdits")
            );
            assert_eq!(ability.followed(PermissionMode::DontAsk), PermissionMode::Default);
            for mode in [PermissionMode::AcceptEdits, PermissionMode::Default] {
                assert_eq!((plan(&ability, mode), ability.followed(mode)), (None, mode));
            }
        }
        for unknown in [json!({"feed": "native"}), json!({"feed": "turn", "modes": modes, "ended": {}})] {
            let ability = of(unknown);
            assert_eq!(plan(&ability, PermissionMode::DontAsk), None);
            assert_eq!(ability.followed(PermissionMode::DontAsk), PermissionMode::DontAsk);
        }
    }

    #[test]
    fn another_input_is_refused_where_the_program_keeps_its_own() {
        let asked = || {
            json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann", "tool_name": "Bash",
                "input": {"command": "ls"}})
        };
        let with = |feed: &str, input: Value| {
            let approval = Approval { input: Some(input), ..Approval::default() };
            refuses(&of(json!({"feed": feed})), asked(), approval)
        };
        assert!(with("acp", json!({"command": "ls -l"})).is_some());
        assert_eq!(with("acp", json!({"command": "ls"})), None, "it is the same");
        assert_eq!(with("acp", json!({})), None);
        assert_eq!(with("native", json!({"command": "ls -l"})), None);
    }

    #[test]
    fn of_a_roster_that_can_not_be_read_nothing_is_known() {
        let team = TeamName::parse("survey").unwrap();
        for bytes in [None, Some(&b"{"[..]), Some(&b"{\"agents\": 3}"[..])] {
            let ability = Abilities::of_bytes(bytes).member(&team, &AgentName::foreign("ann"));
            assert_eq!(ability, Ability::default());
        }
    }
}
