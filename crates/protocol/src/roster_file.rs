//! What clients read from the daemon's roster.json: the capabilities of members, their spawns and panes, and the
//! suspended members. A client reads it while there is no daemon, or where it works on files alone.

use crate::capabilities::Capabilities;
use crate::control::{PastMember, TeamStatus};
use crate::delivery::Delivery;
use crate::name::{AgentName, TeamName};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};

/// The part of roster.json that clients read.
#[derive(Debug, Default, Deserialize)]
pub struct RosterFile {
    #[serde(default)]
    #[serde(rename = "agents")]
    records: Vec<RosterRecord>,
    #[serde(default)]
    #[serde(rename = "past")]
    past_members: BTreeMap<TeamName, Vec<PastMember>>,
}

/// One record of `records`.
#[derive(Debug, Deserialize)]
struct RosterRecord {
    #[serde(default)]
    #[serde(rename = "spawn")]
    spawn_id: String,
    team: TeamName,
    name: AgentName,
    #[serde(rename = "feed")]
    delivery: Delivery,
    #[serde(default)]
    pane: Option<RecordedPane>,
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
struct RecordedPane {
    #[serde(rename = "epoch")]
    server_epoch: String,
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

impl RosterFile {
    /// The name of the file in the state directory.
    pub const FILE_NAME: &str = "roster.json";

    /// The roster in `bytes`; `None` if it can't be read.
    pub fn parse(bytes: &[u8]) -> Option<RosterFile> {
        serde_json::from_slice(bytes).ok()
    }

    /// Those of the running member of that name; unknown ones if there is none.
    pub fn member_capabilities(&self, team: &TeamName, name: &AgentName) -> Capabilities {
        let is_running =
            |record: &&RosterRecord| record.team == *team && record.name == *name && record.exit.is_none();
        self.records
            .iter()
            .rev()
            .find(is_running)
            .map_or_else(Capabilities::default, RosterRecord::capabilities)
    }

    /// The ids of all spawns that have a record.
    pub fn spawn_ids(&self) -> Vec<String> {
        self.records.iter().map(|record| record.spawn_id.clone()).collect()
    }

    /// The tmux servers of all panes, each once.
    pub fn server_epochs(&self) -> BTreeSet<String> {
        self.records.iter().filter_map(|record| Some(record.pane.as_ref()?.server_epoch.clone())).collect()
    }

    /// Each team that has suspended members, with these members alone, as the daemon's status has them.
    pub fn suspended_teams(&self) -> Vec<TeamStatus> {
        let teams = self.past_members.iter().map(|(name, members)| TeamStatus {
            name: name.clone(),
            members: Vec::new(),
            past_members: members.iter().filter(|member| member.is_suspended).cloned().collect(),
            worktrees: Vec::new(),
            budget: None,
        });
        teams.filter(|team| !team.past_members.is_empty()).collect()
    }

    /// Whether the member is suspended.
    pub fn is_suspended(&self, team: &TeamName, name: &AgentName) -> bool {
        let members = self.past_members.get(team).into_iter().flatten();
        members.into_iter().any(|member| member.is_suspended && member.name == *name)
    }
}

impl RosterRecord {
    fn capabilities(&self) -> Capabilities {
        let approved_modes =
            || self.respawn.iter().flat_map(|respawn| respawn.request.approved.keys().cloned());
        let modes = match self.delivery {
            Delivery::Native => Vec::new(),
            Delivery::Turn | Delivery::Acp => self.turn_modes.clone(),
            Delivery::Hook | Delivery::Keys | Delivery::Pull => approved_modes().collect(),
        };
        Capabilities::new(self.delivery, modes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member_request::{Answer, Approval, MemberRequest};
    use crate::permission_mode::PermissionMode;
    use serde_json::{Value, json};

    fn of(agent: Value) -> Capabilities {
        let mut record = json!({"team": "survey", "name": "ann", "token": "t"});
        record.as_object_mut().unwrap().extend(agent.as_object().unwrap().clone());
        let bytes = json!({"version": 1, "agents": [record]}).to_string();
        let team = TeamName::parse("survey").unwrap();
        RosterFile::parse(bytes.as_bytes())
            .unwrap()
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
        for bytes in [&b""[..], b"{", b"{\"agents\": 3}"] {
            assert!(RosterFile::parse(bytes).is_none());
        }
        let team = TeamName::parse("survey").unwrap();
        let capabilities = RosterFile::default().member_capabilities(&team, &AgentName::new_unchecked("ann"));
        assert_eq!(capabilities, Capabilities::default());
    }

    #[test]
    fn who_rests_is_told_and_nobody_else_who_has_ended() {
        let past = |name: &str, rests: bool| json!({"name": name, "state": "killed", "how": "", "at": 1, "rests": rests});
        let roster = json!({
            "version": 1,
            "past": {"survey": [past("ann", true), past("bob", false)], "other": [past("cy", false)]},
        });
        let roster = roster.to_string();
        let roster = RosterFile::parse(roster.as_bytes()).unwrap();
        let told = roster.suspended_teams();
        assert_eq!((told.len(), told[0].name.as_str()), (1, "survey"));
        assert_eq!(told[0].past_members.iter().map(|past| past.name.as_str()).collect::<Vec<_>>(), ["ann"]);
        let rests = |name: &str| roster.is_suspended(&told[0].name, &AgentName::new_unchecked(name));
        assert_eq!(["Ann", "bob", "cy"].map(rests), [true, false, false]);
        assert!(RosterFile::default().suspended_teams().is_empty());
    }
}
