//! What of an answer the program of a member can follow, as far as the daemon's roster tells. What it does not tell is
//! not known, and refused by nobody.

use crate::delivery::Delivery;
use crate::member_request::{Answer, MemberRequest};
use crate::name::{AgentName, TeamName};
use crate::permission_mode::PermissionMode;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The part of the roster that tells it.
#[derive(Debug, Default, Deserialize)]
pub struct RosterFile {
    #[serde(default)]
    #[serde(rename = "agents")]
    records: Vec<RosterRecord>,
}

#[derive(Debug, Deserialize)]
struct RosterRecord {
    team: TeamName,
    name: AgentName,
    #[serde(rename = "feed")]
    delivery: Delivery,
    #[serde(default)]
    #[serde(rename = "modes")]
    turn_modes: Vec<String>,
    #[serde(default)]
    #[serde(rename = "comeback")]
    respawn: Option<RecordedRespawn>,
    #[serde(default)]
    #[serde(rename = "ended")]
    exit: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct RecordedRespawn {
    #[serde(rename = "order")]
    request: RecordedRequest,
}

#[derive(Debug, Deserialize)]
struct RecordedRequest {
    #[serde(default)]
    approved: BTreeMap<String, IgnoredAny>,
}

/// What the program of one member can follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The permission modes in which it could carry out a plan; none: not known.
    modes: Option<Vec<String>>,
    /// It can't be given another input for a tool than its own.
    input_is_fixed: bool,
}

/// Why an answer can't be followed, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedAnswer {
    /// Completes "cannot answer … like that: ".
    pub reason: String,
    /// What can be done.
    pub help: String,
}

impl RosterFile {
    /// The roster's file in the state directory.
    pub const FILE_NAME: &str = "roster.json";

    /// What a roster tells; of one that is missing or can't be read nothing is known.
    pub fn parse_or_default(bytes: Option<&[u8]>) -> RosterFile {
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// Of the one who lives under that name.
    pub fn member_capabilities(&self, team: &TeamName, name: &AgentName) -> Capabilities {
        let lives =
            |agent: &&RosterRecord| agent.team == *team && agent.name == *name && agent.exit.is_none();
        self.records.iter().rev().find(lives).map_or_else(Capabilities::default, RosterRecord::capabilities)
    }
}

impl RosterRecord {
    fn capabilities(&self) -> Capabilities {
        let further = || self.respawn.iter().flat_map(|comeback| comeback.request.approved.keys().cloned());
        let modes: Vec<String> = match self.delivery {
            Delivery::Native => Vec::new(),
            Delivery::Turn | Delivery::Acp => self.turn_modes.clone(),
            Delivery::Hook | Delivery::Keys | Delivery::Pull => further().collect(),
        };
        Capabilities {
            modes: Some(modes).filter(|modes| !modes.is_empty()),
            input_is_fixed: self.delivery == Delivery::Acp,
        }
    }
}

impl Capabilities {
    /// Whether it could not follow that answer.
    pub fn check_answer(&self, asked: &MemberRequest, answer: &Answer) -> Option<UnsupportedAnswer> {
        let Answer::Approve(yes) = answer else { return None };
        match asked {
            MemberRequest::Plan(plan) => {
                let mode = yes.mode.filter(|mode| self.supported_mode(*mode) != *mode)?;
                let why = format!("the program of {} has no mode {mode}", plan.from);
                Some(UnsupportedAnswer { reason: why, help: format!("it has: {}", self.mode_list()) })
            }
            MemberRequest::Permission(request) => {
                let other = yes.input.as_ref().filter(|input| is_changed_input(&request.input, input));
                other.filter(|_| self.input_is_fixed).map(|_| UnsupportedAnswer {
                    reason: format!("the program of {} takes no other input than its own", request.agent_id),
                    help: "approve it as it stands, or say what to do instead: teamctl deny ID --reason R"
                        .to_owned(),
                })
            }
        }
    }

    /// The mode in which it carries out a plan that was approved in this one.
    pub fn supported_mode(&self, mode: PermissionMode) -> PermissionMode {
        let has = |modes: &Vec<String>| modes.iter().any(|known| known == mode.as_str());
        if self.modes.as_ref().is_none_or(has) { mode } else { PermissionMode::Default }
    }

    fn mode_list(&self) -> String {
        let named = self.modes.iter().flatten().map(String::as_str);
        let named = named.filter(|mode| !["plan", "default"].contains(mode));
        std::iter::once("default").chain(named).collect::<Vec<_>>().join(", ")
    }
}

/// An input that says nothing leaves the request's own.
pub fn is_changed_input(input: &Value, given: &Value) -> bool {
    let none = given.is_null() || given.as_object().is_some_and(Map::is_empty);
    !none && input != given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member_request::Approval;
    use serde_json::json;

    fn of(agent: Value) -> Capabilities {
        let mut record = json!({"team": "survey", "name": "ann", "token": "t"});
        record.as_object_mut().unwrap().extend(agent.as_object().unwrap().clone());
        let bytes = json!({"version": 1, "agents": [record]}).to_string();
        let team = TeamName::parse("survey").unwrap();
        RosterFile::parse_or_default(Some(bytes.as_bytes()))
            .member_capabilities(&team, &AgentName::new_unchecked("ann"))
    }

    fn check_answer(ability: &Capabilities, asked: Value, approval: Approval) -> Option<String> {
        let asked = MemberRequest::parse(&asked.to_string()).unwrap();
        ability.check_answer(&asked, &Answer::Approve(approval)).map(|beyond| beyond.help)
    }

    fn plan(ability: &Capabilities, mode: PermissionMode) -> Option<String> {
        let asked = json!({"type": "plan_approval_request", "from": "ann", "timestamp": "", "planFilePath": "p",
            "planContent": "c", "requestId": "plan-1"});
        check_answer(ability, asked, Approval { mode: Some(mode), ..Approval::default() })
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
            assert_eq!(ability.supported_mode(PermissionMode::DontAsk), PermissionMode::Default);
            for mode in [PermissionMode::AcceptEdits, PermissionMode::Default] {
                assert_eq!((plan(&ability, mode), ability.supported_mode(mode)), (None, mode));
            }
        }
        for unknown in [json!({"feed": "native"}), json!({"feed": "turn", "modes": modes, "ended": {}})] {
            let ability = of(unknown);
            assert_eq!(plan(&ability, PermissionMode::DontAsk), None);
            assert_eq!(ability.supported_mode(PermissionMode::DontAsk), PermissionMode::DontAsk);
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
            check_answer(&of(json!({"feed": feed})), asked(), approval)
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
            let ability = RosterFile::parse_or_default(bytes)
                .member_capabilities(&team, &AgentName::new_unchecked("ann"));
            assert_eq!(ability, Capabilities::default());
        }
    }
}
