//! The record of an agent: its spawn request, its lifecycle, and what else the next daemon needs.

use crate::core::agent_process::OnExit;
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::jobs::iterm2_jobs::Iterm2Session;
use crate::core::roster::data_for_next_spawn::{RespawnRecord, serialize_without_environment};
use crate::core::roster::saved_lifecycle;
use crate::core::spawn_lifecycle::Lifecycle;
use protocol::control_socket::{Backend, Process, SpawnRequest};
use protocol::member_color::Color;
use protocol::member_task_and_request_ids::TaskId;
use protocol::permission_mode::PermissionMode;
use protocol::token_and_cost_usage::Usage;
use protocol::worker_or_program_that_runs_turns::TurnProgram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tmux::{PaneId, WindowId};
use worktree::WorktreeRecord;

/// The tmux pane or the iTerm2 session of an agent. `server_epoch` identifies the tmux server. For
/// an iTerm2 session, `server_epoch`, `window` and `location` are empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentPane {
    pub(crate) id: String,
    pub(crate) window: String,
    /// Where people found the window when the pane was opened: `SESSION:INDEX`.
    #[serde(default)]
    pub(crate) location: String,
    pub(crate) server_epoch: String,
    /// The program `it2`, which controls the session. `None` for a tmux pane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) it2: Option<PathBuf>,
}

impl AgentPane {
    /// The session of iTerm2. `None` for a tmux pane.
    pub(crate) fn iterm2_session(&self) -> Option<Iterm2Session> {
        Some(Iterm2Session { it2: self.it2.clone()?, id: self.id.clone() })
    }

    /// The tmux pane. `None` for a session of iTerm2.
    pub(crate) fn id(&self) -> Option<PaneId> {
        self.id.parse().ok()
    }

    /// The pane with the window in which it was opened. `None` if the id can't be parsed.
    pub(crate) fn pane_and_window(&self) -> Option<(PaneId, Option<WindowId>)> {
        Some((self.id()?, self.window.parse().ok()))
    }
}

/// The data of an agent, as the roster saves them for the next daemon. `saved_lifecycle` defines
/// which parts of the lifecycle are saved.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct AgentRecord {
    pub(crate) spawn_id: SpawnId,
    /// The spawn request: what the member is, and how its program is started. The request is in an
    /// `Arc`, because it is large and never changes. The roster leaves out the environment, which
    /// may hold secrets.
    #[serde(serialize_with = "serialize_without_environment")]
    pub(crate) request: Arc<SpawnRequest>,
    /// What the next spawn of the member needs to know of its earlier spawns.
    pub(crate) respawn: RespawnRecord,
    /// Secret that identifies the agent's calls.
    pub(crate) token: String,
    /// The color of the member. `None` until its registration.
    pub(crate) color: Option<Color>,
    pub(crate) prompt_delivery: PromptDelivery,
    pub(crate) approval_delivery: ApprovalDelivery,
    /// The session of the agent's program, if a hook has reported it.
    pub(crate) session: Option<String>,
    /// What else the hooks of the program have reported.
    pub(crate) hook_state: HookState,
    /// The worktree in which the agent was started.
    pub(crate) worktree: Option<WorktreeRecord>,
    /// The permission mode in config.json, in the spelling of the program that wrote it. If another
    /// program drops the mode from config.json, the daemon restores it from this field.
    pub(crate) config_mode: Option<String>,
    /// People are notified, once per turn, if the turn has no output for too long. This is the
    /// start of the last turn about which they were notified, in milliseconds since the epoch.
    pub(crate) no_output_turn: Option<u64>,
    pub(crate) spawned_at: u64,
    #[serde(with = "saved_lifecycle")]
    pub(crate) lifecycle: Lifecycle,
    pub(crate) tracking_task: Option<TaskId>,
    pub(crate) pane: Option<AgentPane>,
    /// Whether the pane is hidden.
    pub(crate) is_hidden: bool,
}

impl AgentRecord {
    #[cfg(test)]
    pub(crate) fn request_mut(&mut self) -> &mut SpawnRequest {
        Arc::make_mut(&mut self.request)
    }

    /// Whether the member was spawned before, and can be respawned.
    pub(crate) fn is_respawn(&self) -> bool {
        self.respawn.respawns > 0 && self.can_respawn()
    }

    /// Whether another spawn of the member may follow this one.
    pub(crate) fn can_respawn(&self) -> bool {
        self.lifecycle.process().on_exit != OnExit::Deregister
    }

    /// The id of the pane. `in-process` for a member that runs without a pane, and an empty text
    /// while the pane is not open yet.
    pub(crate) fn pane_id_or_in_process(&self) -> String {
        match (self.request.backend, &self.pane) {
            (Backend::InProcess, _) => "in-process".to_owned(),
            (_, pane) => pane.as_ref().map(|pane| pane.id.clone()).unwrap_or_default(),
        }
    }

    /// Whether the shim runs the turns of the agent, and so reports them.
    pub(crate) fn has_turns(&self) -> bool {
        self.request.turns.is_some()
    }

    /// The permission mode of the last turn of this or the previous spawn, or else of the spawn
    /// request.
    pub(crate) fn turn_mode(&self) -> Option<PermissionMode> {
        self.respawn.mode.or(self.request.mode)
    }

    /// The model, empty for the program's own choice.
    pub(crate) fn model(&self) -> String {
        self.request.model.clone().unwrap_or_default()
    }

    /// Whether the member must have a plan approved before it works.
    pub(crate) fn requires_plan(&self) -> bool {
        self.request.mode == Some(PermissionMode::Plan)
    }

    /// Whether the member plans, and its plan is not approved.
    pub(crate) fn awaits_plan_approval(&self) -> bool {
        self.requires_plan() && !self.respawn.is_plan_approved
    }

    /// The permission modes in which turns of the agent can run.
    pub(crate) fn turn_modes(&self) -> Vec<String> {
        self.request.turns.as_ref().map(TurnProgram::modes).unwrap_or_default()
    }

    /// The usage of all spawns of the member.
    pub(crate) fn usage(&self) -> Usage {
        self.respawn.usage.usage
    }
}

/// How the first prompt reaches the agent's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PromptDelivery {
    /// The prompt is the first message in the inbox. Also used if there is no prompt.
    Message,
    /// The prompt is in the arguments of the program. The inbox has it as a message too, which no
    /// hook has marked as read yet.
    InArguments,
    /// The prompt is in the arguments of the program, and a hook has marked the message with the
    /// prompt as read.
    Acknowledged,
}

impl PromptDelivery {
    pub(crate) fn new(request: &SpawnRequest) -> PromptDelivery {
        match request.prompt_in_args && !request.prompt.is_empty() {
            true => PromptDelivery::InArguments,
            false => PromptDelivery::Message,
        }
    }
}

/// How the approval of a plan reaches a program that is respawned for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalDelivery {
    /// The approval is a message in the inbox. Also used if no plan was approved.
    Message,
    /// The program is started with the approval of the member's plan in its arguments, as its
    /// prompt. The inbox message with this approval is still unread, because no hook has marked it
    /// as read.
    InArguments,
}

/// An agent's record in an `Arc`, because the state shares it with the jobs that save the roster. A
/// record is copied only if it changes while a job has it. So a save of the roster copies no
/// unchanged records.
#[derive(Clone)]
pub(crate) struct SharedRecord(Arc<SerializedRecord>);

struct SerializedRecord {
    record: AgentRecord,
    /// The record as JSON, kept so that an unchanged record is not serialized again. Empty before
    /// the first save and after each change of the record.
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
        let inner = Arc::make_mut(&mut self.0);
        inner.json.take();
        &mut inner.record
    }
}

impl Serialize for SharedRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let to_json = || to_raw_value(&self.0.record).expect("a record has nothing that JSON cannot hold");
        self.0.json.get_or_init(to_json).serialize(serializer)
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

/// What the hooks of a program have reported, as far as later hook events need it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HookState {
    /// The ancestor processes of the hook that first reported the program's present session. The
    /// nearest process comes first. Empty until a hook has reported a session.
    pub(crate) ancestors: Vec<Process>,
    /// The ids of the messages that were delivered last.
    pub(crate) delivered_ids: Vec<u64>,
    /// The task of the current turn. The daemon gives this id to the hook that runs at the end of
    /// the turn, and the hook completes the task. The id is saved, in case the daemon restarts
    /// during the turn.
    #[serde(default)]
    pub(crate) task: Option<TaskId>,
    /// The dialog at which the program waits.
    pub(crate) dialog: Option<String>,
}

/// The token and the prompt are left out, because this text goes into the log.
impl std::fmt::Debug for AgentRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}@{} {} {:?} {} {:?} {:?}",
            self.request.name,
            self.request.team,
            self.spawn_id.as_str(),
            self.pane,
            self.lifecycle.as_str(),
            self.lifecycle.conn(),
            self.lifecycle.exit()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent_process::AgentProcess;

    #[test]
    fn record_is_serialized_once_until_it_changes_and_its_debug_output_has_no_secrets() {
        let record: SharedRecord = serde_json::from_value(serde_json::json!({
            "spawn_id": "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2", "token": "secret", "spawned_at": 7,
            "request": {"team": "survey", "name": "ann", "unique": false, "argv": [], "cwd": "/", "env": {},
                "prompt": "private", "delivery": "native"},
            "respawn": RespawnRecord::default(), "color": "blue", "prompt_delivery": "message",
            "approval_delivery": "message", "session": null, "hook_state": HookState::default(), "worktree": null,
            "config_mode": null, "no_output_turn": null, "lifecycle": {"running": AgentProcess::default()},
            "tracking_task": null, "pane": null, "is_hidden": false
        }))
        .unwrap();
        let text = |record: &SharedRecord| serde_json::to_string(&[record]).unwrap();
        let text_address = |record: &SharedRecord| record.0.json.get().map(|text| text.get().as_ptr());
        let mut next = record.clone();
        let before = text(&record);
        assert!(
            text_address(&record).is_some() && text_address(&next) == text_address(&record),
            "the clones share one text"
        );
        assert_eq!((text(&next), text_address(&next)), (before.clone(), text_address(&record)));
        next.lifecycle.process_mut().agent_pid = Some(4711);
        assert!(text(&next).contains("4711") && text(&record) == before);
        next.lifecycle.process_mut().agent_pid = Some(4712);
        assert!(text(&next).contains("4712"));
        let read: [SharedRecord; 1] = serde_json::from_str(&before).unwrap();
        assert_eq!(text(&read[0]), before);
        let debug_output = format!("{record:?}");
        assert!(!debug_output.contains("secret") && !debug_output.contains("private"), "{debug_output}");
    }
}
