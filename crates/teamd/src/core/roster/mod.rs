//! The roster: what the daemon saves about agents, teams and pending respawns. The file
//! `roster.json` is in the state directory. config.json has only the data that other programs read.

pub(crate) mod agent_record;
pub(crate) mod data_for_next_spawn;
mod saved_lifecycle;
pub(crate) mod usage_totals;

use crate::core::notifications_to_people::notice::Notice;
use crate::core::roster::agent_record::{AgentRecord, SharedRecord};
use crate::core::roster::data_for_next_spawn::{PendingRespawn, RespawnRecord};
use protocol::control_socket::{
    DeleteTeamRequest, Layout, LeadProcess, PastMember, PersonPane, SpawnRequest,
};
use protocol::roster_file_for_clients::RosterFile;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::token_and_cost_usage::Usage;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use worktree::WorktreeRecord;

/// The version of the format of roster.json. A daemon refuses a file of any other version, and does
/// not change that file.
pub(crate) const ROSTER_VERSION: u32 = RosterFile::VERSION;

/// The content of roster.json.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Roster {
    pub(crate) version: u32,
    #[serde(flatten)]
    pub(crate) pid_origin: PidOrigin,
    pub(crate) joined_counts: BTreeMap<TeamName, u64>,
    /// The layouts of the teams' windows. A team with the default layout has no entry.
    pub(crate) layouts: BTreeMap<TeamName, Layout>,
    /// The panes of persons, beside which the teams' panes are opened.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) person_panes: BTreeMap<TeamName, PersonPane>,
    pub(crate) records: Vec<SharedRecord>,
    /// Members whose last spawn has ended, until their name is taken again.
    pub(crate) past_members: BTreeMap<TeamName, Vec<PastMember>>,
    pub(crate) pending_respawns: Vec<PendingRespawn>,
    pub(crate) lead_sessions: Vec<LeadProcess>,
    /// When the process of each team's last lead session ended, in milliseconds since the epoch. A
    /// team whose last session released it has no entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ended_lead_sessions: BTreeMap<TeamName, u64>,
    /// Worktrees that were created for members. A worktree is not removed before its team is
    /// deleted.
    pub(crate) worktrees: BTreeMap<TeamName, Vec<MemberWorktree>>,
    pub(crate) usage: BTreeMap<TeamName, TeamUsage>,
    /// The names of the teams' record files. A team that is not recorded has no entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) record_files: BTreeMap<TeamName, String>,
    /// Deletions of teams that were accepted and are not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) deletions: Vec<AcceptedDeletion>,
    /// Notices that were not shown yet. A notice of a kind that only a later release knows is left
    /// out when the roster is read.
    #[serde(deserialize_with = "deserialize_known_notices")]
    pub(crate) pending_notices: Vec<Notice>,
}

fn deserialize_known_notices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Notice>, D::Error> {
    let notices: Vec<serde_json::Value> = Vec::deserialize(deserializer)?;
    Ok(notices.into_iter().filter_map(|notice| serde_json::from_value(notice).ok()).collect())
}

/// The deletion of a team that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AcceptedDeletion {
    #[serde(rename = "order")]
    pub(crate) request: DeleteTeamRequest,
    /// In milliseconds since the epoch. A team of the same name that was created later is not
    /// deleted.
    pub(crate) accepted_at: u64,
}

/// A git worktree of a member. The roster gets this entry before git creates the worktree.
/// Invariant: the daemon removes only worktrees that have an entry;
/// `paths_in_files_are_never_deleted` checks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberWorktree {
    pub(crate) member: MemberName,
    pub(crate) record: WorktreeRecord,
}

/// The usage of a team, and why no member is spawned once its budget is exhausted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamUsage {
    /// How many turns the members have started.
    pub(crate) turns: u64,
    /// The usage of those turns, as far as programs report it.
    pub(crate) usage: Usage,
    /// When the time limit of the team began, in milliseconds since the epoch.
    pub(crate) started_at: u64,
    pub(crate) exhausted_reason: Option<String>,
    /// At the home: what the members on other hosts have used, by host. `turns` and `usage` include
    /// it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annexes: BTreeMap<String, AnnexUsage>,
    /// The epoch of the home here at which the usage of the old home was added. 0: none was added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) old_home_added: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What the members of a team on one other host have used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnnexUsage {
    /// The number of the last event that is counted.
    pub(crate) counted: u64,
    /// The usage of each member.
    pub(crate) members: BTreeMap<MemberName, Usage>,
}

/// Where the pids and start times in the roster are valid: in one boot of the machine, and in one
/// PID namespace. A container that is started again in the same boot has another PID namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PidOrigin {
    /// The id of the boot. `None` if unknown.
    pub(crate) boot_id: Option<String>,
    /// The PID namespace and when its first process was started. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid_namespace: Option<String>,
}

impl From<platform::PidOrigin> for PidOrigin {
    fn from(origin: platform::PidOrigin) -> PidOrigin {
        PidOrigin { boot_id: origin.boot_id, pid_namespace: origin.pid_namespace }
    }
}

impl PidOrigin {
    /// Whether all processes of this origin count as ended, because the boot or the PID namespace
    /// differs from that in `now`. An unknown boot or namespace counts as equal.
    fn is_gone(&self, now: &PidOrigin) -> bool {
        let differs = |before: &Option<String>, now: &Option<String>| {
            before.as_ref().zip(now.as_ref()).is_some_and(|(before, now)| before != now)
        };
        differs(&self.boot_id, &now.boot_id) || differs(&self.pid_namespace, &now.pid_namespace)
    }

    /// Takes over what `now` knows.
    fn update(&mut self, now: PidOrigin) {
        self.boot_id = now.boot_id.or(self.boot_id.take());
        self.pid_namespace = now.pid_namespace.or(self.pid_namespace.take());
    }
}

/// A start time that no process has. It replaces the start times of processes from before a reboot.
pub(crate) const UNKNOWN_START: u64 = u64::MAX;

impl Roster {
    /// Marks all processes in the roster as dead if the machine or its container was restarted. A
    /// start time counts from the boot, so after a reboot another process can have the same pid and
    /// the same start time. `now` is the origin of the pids that this process sees.
    pub(crate) fn invalidate_after_restart(&mut self, now: PidOrigin) {
        if self.pid_origin.is_gone(&now) {
            for record in &mut self.records {
                let record: &mut AgentRecord = record;
                let ancestors = record.hook_state.ancestors.iter_mut();
                ancestors
                    .chain(&mut record.lifecycle.process_mut().shim)
                    .for_each(|process| process.start_time = UNKNOWN_START);
            }
            self.lead_sessions.iter_mut().for_each(|lead| lead.start_time = UNKNOWN_START);
        }
        self.pid_origin.update(now);
    }

    /// The environment files that an agent or a pending respawn needs.
    pub(crate) fn environment_files(&self) -> impl Iterator<Item = &str> {
        let pending = self.pending_respawns.iter().map(|pending| pending.respawn.environment_file.as_str());
        self.records.iter().map(|record| record.respawn.environment_file.as_str()).chain(pending)
    }

    /// Restores the environments of members that can be respawned, because roster.json leaves them
    /// out. `read` returns the environment from the file of the given name.
    pub(crate) fn load_environments(&mut self, read: impl Fn(&str) -> BTreeMap<String, String>) {
        for record in self.records.iter_mut().filter(|record| record.can_respawn()) {
            let record: &mut AgentRecord = record;
            load_environment(&mut record.request, &record.respawn, &read);
        }
        for pending in &mut self.pending_respawns {
            load_environment(&mut pending.request, &pending.respawn, &read);
        }
    }
}

fn load_environment(
    request: &mut Arc<SpawnRequest>,
    respawn: &RespawnRecord,
    read: impl Fn(&str) -> BTreeMap<String, String>,
) {
    if request.env.is_empty() {
        Arc::make_mut(request).env = read(&respawn.environment_file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::notifications_to_people::notice::NoticeKind;
    use crate::core::roster::data_for_next_spawn::RespawnStart;

    #[test]
    fn environment_is_stored_in_its_own_file_and_not_in_the_roster() {
        let request: SpawnRequest = serde_json::from_value(serde_json::json!({
            "team": "survey", "name": "ann", "unique": false, "argv": ["x"], "cwd": "/", "env": {"KEY": "secret"},
            "prompt": "", "delivery": "pull"
        }))
        .unwrap();
        let pending = vec![PendingRespawn {
            request: Arc::new(request),
            respawn: RespawnRecord { environment_file: "7.json".to_owned(), ..RespawnRecord::default() },
            respawn_at: 0,
            start: RespawnStart::At(0),
        }];
        let text = serde_json::to_string(&Roster { pending_respawns: pending, ..Roster::default() }).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let mut roster: Roster = serde_json::from_str(&text).unwrap();
        assert_eq!(roster.environment_files().collect::<Vec<_>>(), ["7.json"]);
        roster.load_environments(|file| [("FILE".to_owned(), file.to_owned())].into());
        assert_eq!(roster.pending_respawns[0].request.env["FILE"], "7.json");
    }

    #[test]
    fn new_pid_origin_invalidates_all_processes_and_an_unknown_one_none() {
        let lead = serde_json::json!({"team": "survey", "pid": 1, "start_time": 7});
        let roster = Roster {
            pid_origin: pid_origin(Some("one"), Some("ns 1")),
            lead_sessions: vec![serde_json::from_value(lead).unwrap()],
            ..Roster::default()
        };
        let roster = serde_json::to_value(roster).unwrap();
        for (boot, namespace, start) in [
            (None, None, 7),
            (Some("one"), Some("ns 1"), 7),
            (Some("two"), None, UNKNOWN_START),
            (Some("one"), Some("ns 2"), UNKNOWN_START),
        ] {
            let mut roster: Roster = serde_json::from_value(roster.clone()).unwrap();
            roster.invalidate_after_restart(pid_origin(boot, namespace));
            assert_eq!(roster.lead_sessions[0].start_time, start, "{boot:?} {namespace:?}");
            let expected = pid_origin(boot.or(Some("one")), namespace.or(Some("ns 1")));
            assert_eq!(roster.pid_origin, expected);
        }
        let mut old = roster;
        old.as_object_mut().unwrap().remove("pid_namespace");
        let mut old: Roster = serde_json::from_value(old).unwrap();
        old.invalidate_after_restart(pid_origin(Some("one"), Some("ns 2")));
        assert_eq!(old.lead_sessions[0].start_time, 7, "an earlier version wrote no namespace");
    }

    #[test]
    fn notice_of_a_later_release_is_left_out() {
        let notices = serde_json::json!([
            {"team": "survey", "member": null, "kind": {"of_next_year": 7}},
            {"team": "survey", "member": null, "kind": "two_homes"}
        ]);
        let mut roster = serde_json::to_value(Roster::default()).unwrap();
        roster["pending_notices"] = notices;
        let roster: Roster = serde_json::from_value(roster).unwrap();
        let kinds: Vec<_> = roster.pending_notices.into_iter().map(|notice| notice.kind).collect();
        assert_eq!(kinds, [NoticeKind::TwoHomes]);
    }

    fn pid_origin(boot: Option<&str>, namespace: Option<&str>) -> PidOrigin {
        PidOrigin { boot_id: boot.map(str::to_owned), pid_namespace: namespace.map(str::to_owned) }
    }

    /// `fixtures` has a roster of each version. A fixture of an earlier version is never changed.
    #[test]
    fn roster_of_this_version_can_be_read() {
        let path = format!("{}/fixtures/roster-{ROSTER_VERSION}.json", env!("CARGO_MANIFEST_DIR"));
        let roster: Roster = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(roster.version, ROSTER_VERSION);
        let mut names: Vec<String> =
            roster.records.iter().map(|record| record.request.name.to_string()).collect();
        names.sort();
        assert_eq!(names, ["ann", "bob"]);
        assert_eq!(roster.past_members.values().flatten().count(), 1);
    }
}
