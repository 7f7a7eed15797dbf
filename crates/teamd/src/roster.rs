//! The roster: the truth about our panes, on disk, outside the root.
//!
//! What must outlive a crash of the daemon stands here and nothing else. config.json is its public face.

mod comeback;
mod end;
mod record;

pub(crate) use comeback::{Comeback, Resting};
pub(crate) use end::{End, Outcome, Told};
pub(crate) use protocol::control::Process;
pub(crate) use record::{Heard, Pane, Record, Shared, SpawnId};

use crate::notices::Notice;
use protocol::control::{Layout, LeadProcess, PastMember};
use protocol::name::{AgentName, TeamName};
use protocol::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use worktree::WorktreeRecord;

/// Nothing in a test is left to chance.
#[cfg(test)]
pub(crate) use crate::sim::uuid;

/// A new one.
#[cfg(not(test))]
pub(crate) fn uuid() -> uuid::Uuid {
    uuid::Uuid::new_v4()
}

/// The version of the roster's form; an older daemon that meets a newer one leaves it alone.
pub(crate) const ROSTER_VERSION: u32 = 1;

/// The truth about our panes, on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Roster {
    pub(crate) version: u32,
    /// The start of the machine that its processes are of: see [`crate::life::boot`].
    #[serde(default)]
    pub(crate) boot: Option<String>,
    pub(crate) teams: BTreeMap<TeamName, u64>,
    /// Of their windows, where it is not the usual one.
    #[serde(default)]
    pub(crate) layouts: BTreeMap<TeamName, Layout>,
    pub(crate) agents: Vec<Shared>,
    /// Members whose life has ended, until their name is taken again.
    #[serde(default)]
    pub(crate) past: BTreeMap<TeamName, Vec<PastMember>>,
    #[serde(default)]
    pub(crate) resting: Vec<Resting>,
    #[serde(default)]
    pub(crate) leads: Vec<LeadProcess>,
    /// Made for members of these teams, and to be removed with the team at the earliest.
    #[serde(default)]
    pub(crate) worktrees: BTreeMap<TeamName, Vec<Ground>>,
    #[serde(default)]
    pub(crate) spent: BTreeMap<TeamName, Spent>,
    /// What people are to be told, and were not yet.
    #[serde(default)]
    pub(crate) untold: Vec<Notice>,
}

/// A worktree, and whose it is. Here before git makes anything: what is not here is nobody's to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ground {
    pub(crate) member: AgentName,
    pub(crate) tree: WorktreeRecord,
}

/// What a team has used up, and why nobody is started for it any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// Turns of its members.
    pub(crate) turns: u64,
    /// What those have used up, as far as their programs tell.
    #[serde(default)]
    pub(crate) used: Usage,
    /// When its time began, ms since the epoch.
    pub(crate) since: u64,
    pub(crate) why: Option<String>,
}

/// No process has this start: of one of before the machine was started again.
pub(crate) const NEVER: u64 = u64::MAX;

impl Roster {
    /// After another start of the machine than this one, a process that has the number and the start time of one of
    /// ours, which counts from there, is none of ours. Where the kernel does not say which this is, it is the one before.
    pub(crate) fn disown_before(&mut self, boot: Option<String>) {
        let Some(boot) = boot else { return };
        if self.boot.as_ref().is_some_and(|before| *before != boot) {
            for record in &mut self.agents {
                let record: &mut Record = record;
                let above = record.heard.above.iter_mut();
                above.chain(&mut record.join).for_each(|process| process.start_time = NEVER);
            }
            self.leads.iter_mut().for_each(|lead| lead.start_time = NEVER);
        }
        self.boot = Some(boot);
    }

    /// The files of all environments that somebody still needs.
    pub(crate) fn environments(&self) -> impl Iterator<Item = &str> {
        let resting = self.resting.iter().map(|resting| resting.comeback.env.as_str());
        self.agents.iter().map(|record| record.env.as_str()).chain(resting)
    }

    /// Gives the orders of further lives their environments back, as `read` finds them.
    pub(crate) fn recall_environments(&mut self, read: impl Fn(&str) -> BTreeMap<String, String>) {
        let living = self.agents.iter_mut().filter_map(|record| record.comeback.as_mut());
        let comebacks = living.chain(self.resting.iter_mut().map(|resting| &mut resting.comeback));
        for comeback in comebacks.filter(|comeback| comeback.order.env.is_empty()) {
            comeback.order.env = read(&comeback.env);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::control::SpawnRequest;

    #[test]
    fn an_environment_is_not_in_the_roster_and_comes_back_from_its_file() {
        let order: SpawnRequest = serde_json::from_value(serde_json::json!({
            "team": "survey", "name": "ann", "unique": false, "argv": ["x"], "cwd": "/", "env": {"KEY": "secret"},
            "prompt": "", "feed": "pull"
        }))
        .unwrap();
        let comeback = Comeback { env: "7.json".to_owned(), ..Comeback::of(&order) };
        let resting = vec![Resting { comeback, at: 0, due: 0, put_away: false }];
        let text = serde_json::to_string(&Roster { resting, ..Roster::default() }).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let mut roster: Roster = serde_json::from_str(&text).unwrap();
        assert_eq!(roster.environments().collect::<Vec<_>>(), ["7.json"]);
        roster.recall_environments(|file| [("FILE".to_owned(), file.to_owned())].into());
        assert_eq!(roster.resting[0].comeback.order.env["FILE"], "7.json");
    }

    #[test]
    fn another_start_of_the_machine_disowns_all_processes_and_an_unknown_one_none() {
        let lead = serde_json::json!({"team": "survey", "pid": 1, "start": 7});
        let roster =
            serde_json::json!({"version": 1, "boot": "one", "teams": {}, "agents": [], "leads": [lead]});
        for (boot, start) in [(None, 7), (Some("one"), 7), (Some("two"), NEVER)] {
            let mut roster: Roster = serde_json::from_value(roster.clone()).unwrap();
            roster.disown_before(boot.map(str::to_owned));
            assert_eq!(roster.leads[0].start_time, start, "{boot:?}");
            assert_eq!(roster.boot.as_deref(), boot.or(Some("one")));
        }
    }

    /// Beside the sources lies one of each release, and none of them is ever changed.
    #[test]
    fn the_roster_of_every_release_can_be_read() {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
        let mut read = 0;
        for entry in std::fs::read_dir(fixtures).unwrap() {
            let path = entry.unwrap().path();
            let roster: Roster = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            assert!(roster.version <= ROSTER_VERSION, "{}", path.display());
            let mut names: Vec<String> = roster.agents.iter().map(|agent| agent.name.to_string()).collect();
            names.sort();
            assert_eq!(names, ["ann", "bob"], "{}", path.display());
            assert_eq!(roster.past.values().flatten().count(), 1);
            read += 1;
        }
        assert!(read > 0);
    }
}
