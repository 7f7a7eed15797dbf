//! The roster: the truth about our panes, on disk, outside the root.
//!
//! What must outlive a crash of the daemon stands here and nothing else. config.json is its public face.

use protocol::color::Color;
use protocol::control::{Ended, Layout, Lead, Life, PastAgent, Spawn};
use protocol::feed::Feed;
use protocol::id::{RequestId, TaskId};
use protocol::mode::PermissionMode;
use protocol::name::{AgentName, TeamName};
use protocol::turn::{Backend, PlanStage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tmux::{Owner, PaneId};
use worktree::Tree;

/// Nothing in a test is left to chance.
#[cfg(test)]
pub(crate) use crate::sim::uuid;

/// A new one.
#[cfg(not(test))]
pub(crate) fn uuid() -> uuid::Uuid {
    uuid::Uuid::new_v4()
}

/// The id of one life of an agent: on join's command line, in the pane's option `@teamd`, in the roster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct SpawnId(String);

impl SpawnId {
    /// A new one, never used before.
    pub(crate) fn fresh() -> SpawnId {
        SpawnId(uuid().to_string())
    }

    /// As somebody said it; whether we know it is seen in the roster.
    pub(crate) fn claimed(text: &str) -> SpawnId {
        SpawnId(text.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of the pane option that marks the pane as this agent's.
    pub(crate) fn owner(&self) -> Owner {
        self.0.parse().expect("a uuid is made of hex digits and dashes")
    }
}

pub(crate) use protocol::control::Process;

/// A pane of ours; its epoch says on which server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pane {
    pub(crate) pane: String,
    pub(crate) window: String,
    pub(crate) epoch: String,
}

impl Pane {
    pub(crate) fn id(&self) -> Option<PaneId> {
        self.pane.parse().ok()
    }
}

/// What of an agent survives a daemon's crash.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) spawn: SpawnId,
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    /// Proves that a caller is this agent.
    pub(crate) token: String,
    /// From registration on.
    pub(crate) color: Option<Color>,
    pub(crate) feed: Feed,
    /// What its screen shows while it waits at a dialog.
    #[serde(default)]
    pub(crate) dialog: Vec<String>,
    #[serde(default)]
    pub(crate) backend: Backend,
    /// Its join runs its turns, and so knows of them.
    #[serde(default)]
    pub(crate) has_turns: bool,
    /// What it takes to start it again after a failure; none: it is not started again.
    #[serde(default)]
    pub(crate) comeback: Option<Comeback>,
    pub(crate) agent_type: Option<String>,
    pub(crate) model: String,
    pub(crate) prompt: String,
    /// Its program got the prompt on its command line.
    #[serde(default)]
    pub(crate) prompted: bool,
    /// A hook of it knows that.
    #[serde(default)]
    pub(crate) prompt_told: bool,
    /// Its program's session, where a hook told it.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// What else its hooks told.
    #[serde(default)]
    pub(crate) heard: Heard,
    pub(crate) cwd: PathBuf,
    /// The worktree that it was started in.
    #[serde(default)]
    pub(crate) worktree: Option<Tree>,
    /// The file of its environment, below `env` of the state directory; empty in a roster of before.
    #[serde(default)]
    pub(crate) env: String,
    pub(crate) plan_mode_required: bool,
    /// A plan of this life was approved: it has left plan mode.
    #[serde(default)]
    pub(crate) plan_approved: bool,
    /// The permission mode that config.json had last, for when that is lost; as its writer spelled it.
    #[serde(default)]
    pub(crate) mode: Option<String>,
    /// Its program can't leave plan mode by itself: this life is to end, and the next to begin in the mode of the approval.
    #[serde(default)]
    pub(crate) goes_on: bool,
    /// Its program got that approval on its command line, and no hook of it knows that yet.
    #[serde(default)]
    pub(crate) approval_given: bool,
    /// The permission modes that its turns can be run in.
    #[serde(default)]
    pub(crate) modes: Vec<String>,
    pub(crate) born: u64,
    pub(crate) tracking: Option<TaskId>,
    pub(crate) pane: Option<Pane>,
    /// Its pane is out of sight.
    #[serde(default)]
    pub(crate) hidden: bool,
    pub(crate) join: Option<Process>,
    pub(crate) agent: Option<u32>,
    /// The shutdown requests of this life, the latest last: a lost one is asked again under a fresh id.
    #[serde(default)]
    pub(crate) asked: Vec<RequestId>,
    /// It said yes to one of them.
    #[serde(default)]
    pub(crate) approved: bool,
    /// What its join told when it went, while tmux is being asked what that meant.
    #[serde(default)]
    pub(crate) reported: Option<Ended>,
    /// Set before its lead is told, so that a crash between the two does not tell it twice.
    pub(crate) ended: Option<End>,
}

/// What the hooks of a program told that is needed at its next turn's end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Heard {
    /// The processes above the first hook of its session, the nearest first; none yet in this life.
    pub(crate) above: Vec<Process>,
    /// What was handed over last, by the digests of its messages.
    pub(crate) handed: Vec<u64>,
}

/// Without the token, which opens doors, and the prompt, which is nobody's business: this goes into the log.
impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{} {} {:?} {:?}", self.name, self.team, self.spawn.as_str(), self.pane, self.ended)
    }
}

/// A member that may have further lives: spawned with `--restart on-failure`, or one that leaves plan mode by another
/// life alone.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Comeback {
    /// On disk without its environment, which may hold secrets: that lies in the file `env`.
    #[serde(serialize_with = "without_environment")]
    pub(crate) order: Box<Spawn>,
    /// The file of its environment, below `env` of the state directory.
    #[serde(default)]
    pub(crate) env: String,
    /// When its lives failed, ms since the epoch; those that count, the latest last.
    pub(crate) failures: Vec<u64>,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// The session that its program had, for a next life to go on with.
    pub(crate) session: Option<String>,
    /// The mode that it was in; none: the one of its order.
    #[serde(default)]
    pub(crate) mode: Option<PermissionMode>,
    /// How far it was with its plan, while that was not approved.
    #[serde(default)]
    pub(crate) plan: Option<PlanStage>,
    /// A plan of its was approved.
    #[serde(default)]
    pub(crate) plan_approved: bool,
    /// The mode of that approval, where its lives have to begin in it.
    #[serde(default)]
    pub(crate) approved: Option<PermissionMode>,
}

impl Comeback {
    /// Of a member that lives for the first time.
    pub(crate) fn of(order: Box<Spawn>) -> Comeback {
        let (mode, plan, plan_approved) = (None, None, false);
        Comeback {
            order,
            env: String::new(),
            failures: Vec::new(),
            restarts: 0,
            session: None,
            mode,
            plan,
            plan_approved,
            approved: None,
        }
    }

    /// What the lives after the approval of its plan are started with.
    pub(crate) fn approved_life(&self) -> Option<&Life> {
        self.order.approved.get(self.approved?.word())
    }
}

fn without_environment<S: serde::Serializer>(order: &Spawn, serializer: S) -> Result<S::Ok, S::Error> {
    Spawn { env: BTreeMap::new(), ..order.clone() }.serialize(serializer)
}

/// A member between a failed life and the next.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Resting {
    pub(crate) comeback: Comeback,
    /// When the next one begins: ms since the epoch, for people, and on the daemon's own clock.
    pub(crate) at: u64,
    #[serde(skip)]
    pub(crate) due: u64,
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {}", self.comeback.order, self.at)
    }
}

/// What other programs on these files call the end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// By itself, or with its own yes.
    Completed,
    #[default]
    Failed,
    /// By force, or its pane was closed.
    Killed,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Killed => "killed",
        }
    }
}

/// How and when an agent ended, and whether its lead is to hear of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) how: String,
    #[serde(default)]
    pub(crate) outcome: Outcome,
    /// What follows, for people: that it is started again, or why not.
    #[serde(default)]
    pub(crate) then: Option<String>,
    pub(crate) at: u64,
    pub(crate) told: Told,
}

/// Who learns of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// It approved its shutdown: the lead has its word already.
    Nobody,
    /// A crash, a kill, a closed pane.
    Lead,
}

/// No process has this start.
const NEVER: u64 = u64::MAX;

impl Roster {
    /// After another start of the machine than this one, a process that has the number and the start time of one of
    /// ours, which counts from there, is none of ours. Where the kernel does not say which this is, it is the one before.
    pub(crate) fn disown_before(&mut self, boot: Option<String>) {
        let Some(boot) = boot else { return };
        if self.boot.as_ref().is_some_and(|before| *before != boot) {
            for record in &mut self.agents {
                let above = record.heard.above.iter_mut();
                above.chain(&mut record.join).for_each(|process| process.start = NEVER);
            }
            self.leads.iter_mut().for_each(|lead| lead.start = NEVER);
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
    pub(crate) agents: Vec<Record>,
    /// Members whose life has ended, until their name is taken again.
    #[serde(default)]
    pub(crate) past: BTreeMap<TeamName, Vec<PastAgent>>,
    #[serde(default)]
    pub(crate) resting: Vec<Resting>,
    #[serde(default)]
    pub(crate) leads: Vec<Lead>,
    /// Made for members of these teams, and to be removed with the team at the earliest.
    #[serde(default)]
    pub(crate) worktrees: BTreeMap<TeamName, Vec<Ground>>,
}

/// A worktree, and whose it is. Here before git makes anything: what is not here is nobody's to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ground {
    pub(crate) member: AgentName,
    pub(crate) tree: Tree,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_not_in_the_roster_and_comes_back_from_its_file() {
        let order: Spawn = serde_json::from_value(serde_json::json!({
            "team": "survey", "name": "ann", "unique": false, "argv": ["x"], "cwd": "/", "env": {"KEY": "secret"},
            "prompt": "", "feed": "pull"
        }))
        .unwrap();
        let comeback = Comeback { env: "7.json".to_owned(), ..Comeback::of(Box::new(order)) };
        let resting = vec![Resting { comeback, at: 0, due: 0 }];
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
            assert_eq!(roster.leads[0].start, start, "{boot:?}");
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
