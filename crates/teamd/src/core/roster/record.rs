//! What of an agent survives a daemon's crash: which life, whose, in which pane, what was heard of it.

use crate::core::id::SpawnId;
use crate::core::lifecycle::Lifecycle;
use crate::core::roster::respawn::RespawnRecord;
use protocol::color::Color;
use protocol::control::{Backend, Process};
use protocol::delivery::Delivery;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::usage::Usage;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tmux::{PaneId, WindowId};
use worktree::WorktreeRecord;

/// It is not the first life under this order.
pub(crate) fn is_respawn(record: &AgentRecord) -> bool {
    record.respawn.as_ref().is_some_and(|comeback| comeback.respawns > 0)
}

/// Its pane, or the word for having none.
pub(crate) fn pane_id_or_in_process(record: &AgentRecord) -> String {
    match (record.backend, &record.pane) {
        (Backend::InProcess, _) => "in-process".to_owned(),
        (_, pane) => pane.as_ref().map(|pane| pane.id.clone()).unwrap_or_default(),
    }
}

/// A pane of ours; its epoch says on which server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentPane {
    #[serde(rename = "pane")]
    pub(crate) id: String,
    pub(crate) window: String,
    #[serde(rename = "epoch")]
    pub(crate) server_epoch: String,
}

impl AgentPane {
    pub(crate) fn id(&self) -> Option<PaneId> {
        self.id.parse().ok()
    }

    /// With the window that it was made in.
    pub(crate) fn pane_and_window(&self) -> Option<(PaneId, Option<WindowId>)> {
        Some((self.id()?, self.window.parse().ok()))
    }
}

/// What of an agent survives a daemon's crash.
#[derive(Clone)]
pub(crate) struct AgentRecord {
    pub(crate) spawn_id: SpawnId,
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    /// Proves that a caller is this agent.
    pub(crate) token: String,
    /// From registration on.
    pub(crate) color: Option<Color>,
    pub(crate) delivery: Delivery,
    /// What its screen shows while it waits at a dialog.
    pub(crate) dialog_patterns: Vec<String>,
    pub(crate) backend: Backend,
    /// Its join runs its turns, and so knows of them.
    pub(crate) has_turns: bool,
    /// What it takes to start it again after a failure; none: it is not started again.
    pub(crate) respawn: Option<RespawnRecord>,
    pub(crate) agent_type: Option<String>,
    pub(crate) model: String,
    pub(crate) prompt: String,
    /// Its program got the prompt on its command line.
    pub(crate) is_prompt_in_args: bool,
    /// A hook of it knows that.
    pub(crate) is_prompt_acknowledged: bool,
    /// Its program's session, where a hook told it.
    pub(crate) session: Option<String>,
    /// What else its hooks told.
    pub(crate) hook_state: HookState,
    pub(crate) cwd: PathBuf,
    /// The worktree that it was started in.
    pub(crate) worktree: Option<WorktreeRecord>,
    /// The file of its environment, below `env` of the state directory; empty in a roster of before.
    pub(crate) environment_file: String,
    pub(crate) plan_mode_required: bool,
    /// A plan of this life was approved: it has left plan mode.
    pub(crate) is_plan_approved: bool,
    /// The permission mode that config.json had last, for when that is lost; as its writer spelled it.
    pub(crate) mode: Option<String>,
    /// Its program got that approval on its command line, and no hook of it knows that yet.
    pub(crate) is_approval_in_args: bool,
    /// The turn, by its begin, that was told to be stuck.
    pub(crate) no_output_turn: Option<u64>,
    /// The permission modes that its turns can be run in.
    pub(crate) turn_modes: Vec<String>,
    pub(crate) spawned_at: u64,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) tracking_task: Option<TaskId>,
    pub(crate) pane: Option<AgentPane>,
    /// Its pane is out of sight.
    pub(crate) is_hidden: bool,
}

impl AgentRecord {
    /// What it has used up, in its lives before as well.
    pub(crate) fn usage(&self) -> Usage {
        self.respawn.as_ref().map(|comeback| comeback.usage.usage).unwrap_or_default()
    }
}

/// A record that whatever is on its way to the disk shares with the state: who changes one that is shared changes a copy,
/// so a roster of many, of which one has changed, costs one.
#[derive(Clone)]
pub(crate) struct SharedRecord(Arc<SerializedRecord>);

struct SerializedRecord {
    record: AgentRecord,
    /// How it is written; none before that was asked for, or since it changed.
    json: OnceLock<Box<RawValue>>,
}

impl From<AgentRecord> for SharedRecord {
    fn from(record: AgentRecord) -> SharedRecord {
        SharedRecord(Arc::new(SerializedRecord { record, json: OnceLock::new() }))
    }
}

impl Clone for SerializedRecord {
    fn clone(&self) -> SerializedRecord {
        SerializedRecord { record: self.record.clone(), json: OnceLock::new() }
    }
}

impl Deref for SharedRecord {
    type Target = AgentRecord;

    fn deref(&self) -> &AgentRecord {
        &self.0.record
    }
}

impl DerefMut for SharedRecord {
    fn deref_mut(&mut self) -> &mut AgentRecord {
        let spelled = Arc::make_mut(&mut self.0);
        spelled.json.take();
        &mut spelled.record
    }
}

impl Serialize for SharedRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spelled = || to_raw_value(&self.0.record).expect("a record has nothing that JSON cannot hold");
        self.0.json.get_or_init(spelled).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SharedRecord, D::Error> {
        AgentRecord::deserialize(deserializer).map(SharedRecord::from)
    }
}

impl std::fmt::Debug for SharedRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.record.fmt(f)
    }
}

/// What the hooks of a program told that is needed later, at its next turn's end say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HookState {
    /// The processes above the first hook of its session, the nearest first; none yet in this life.
    #[serde(rename = "above")]
    pub(crate) ancestors: Vec<Process>,
    /// What was handed over last, by the digests of its messages.
    #[serde(rename = "handed")]
    pub(crate) delivered_ids: Vec<u64>,
    /// The dialog that the program waits at.
    #[serde(default)]
    pub(crate) dialog: Option<String>,
}

/// Without the token, which opens doors, and the prompt, which is nobody's business: this goes into the log.
impl std::fmt::Debug for AgentRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}@{} {} {:?} {:?}",
            self.name,
            self.team,
            self.spawn_id.as_str(),
            self.pane,
            self.lifecycle.exit()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_spelled_once_until_it_changes_and_its_text_is_in_no_log() {
        let record: SharedRecord = serde_json::from_value(serde_json::json!({
            "spawn": "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2", "team": "survey", "name": "ann", "token": "secret",
            "color": "blue", "feed": "native", "agent_type": null, "model": "", "prompt": "private", "cwd": "/",
            "plan_mode_required": false, "born": 7, "tracking": null, "pane": null, "join": null, "agent": null,
            "ended": null
        }))
        .unwrap();
        let text = |record: &SharedRecord| serde_json::to_string(&[record]).unwrap();
        let place = |record: &SharedRecord| record.0.json.get().map(|text| text.get().as_ptr());
        let mut next = record.clone();
        let before = text(&record);
        assert!(place(&record).is_some() && place(&next) == place(&record), "for all who share it");
        assert_eq!((text(&next), place(&next)), (before.clone(), place(&record)));
        next.lifecycle.process_mut().agent_pid = Some(4711);
        assert!(text(&next).contains("4711") && text(&record) == before);
        next.lifecycle.process_mut().agent_pid = Some(4712);
        assert!(text(&next).contains("4712"));
        let read: [SharedRecord; 1] = serde_json::from_str(&before).unwrap();
        assert_eq!(text(&read[0]), before);
        let shown = format!("{record:?}");
        assert!(!shown.contains("secret") && !shown.contains("private"), "{shown}");
    }
}
