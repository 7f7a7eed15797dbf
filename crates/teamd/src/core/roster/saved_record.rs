//! The form of an agent's record in roster.json. Clients read some of its keys, see `protocol::roster_file`.

use crate::core::exit_record::ExitRecord;
use crate::core::id::SpawnId;
use crate::core::lifecycle::{
    AgentProcess, Exited, Handover, Lifecycle, OnExit, PendingShutdown, ShutdownApproval, ShutdownRequests,
    StopCause, StopStage, Stopping, WithoutApproval,
};
use crate::core::roster::record::{AgentPane, AgentRecord, HookState};
use crate::core::roster::respawn::RespawnRecord;
use protocol::color::Color;
use protocol::control::{Backend, ExitReport, Process};
use protocol::delivery::Delivery;
use protocol::id::{RequestId, TaskId};
use protocol::name::{AgentName, TeamName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;
use worktree::WorktreeRecord;

impl Serialize for AgentRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SavedRecord::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AgentRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AgentRecord, D::Error> {
        SavedRecord::deserialize(deserializer).map(AgentRecord::from)
    }
}

/// An [`AgentRecord`] with the keys of roster.json, where the lifecycle is spread over several keys.
#[derive(Serialize, Deserialize)]
struct SavedRecord {
    #[serde(rename = "spawn")]
    spawn_id: SpawnId,
    team: TeamName,
    name: AgentName,
    token: String,
    color: Option<Color>,
    #[serde(rename = "feed")]
    delivery: Delivery,
    #[serde(default)]
    #[serde(rename = "dialog")]
    dialog_patterns: Vec<String>,
    #[serde(default)]
    backend: Backend,
    #[serde(default)]
    has_turns: bool,
    #[serde(default)]
    #[serde(rename = "comeback")]
    respawn: Option<RespawnRecord>,
    agent_type: Option<String>,
    model: String,
    prompt: String,
    #[serde(default)]
    #[serde(rename = "prompted")]
    is_prompt_in_args: bool,
    #[serde(default)]
    #[serde(rename = "prompt_told")]
    is_prompt_acknowledged: bool,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    #[serde(rename = "heard")]
    hook_state: HookState,
    cwd: PathBuf,
    #[serde(default)]
    worktree: Option<WorktreeRecord>,
    #[serde(default)]
    #[serde(rename = "env")]
    environment_file: String,
    plan_mode_required: bool,
    #[serde(default)]
    #[serde(rename = "plan_approved")]
    is_plan_approved: bool,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    #[serde(rename = "goes_on")]
    has_handover: bool,
    #[serde(default)]
    #[serde(rename = "to_rest")]
    is_suspended_on_exit: bool,
    #[serde(default)]
    #[serde(rename = "killed")]
    is_forced: bool,
    #[serde(default)]
    #[serde(rename = "approval_given")]
    is_approval_in_args: bool,
    #[serde(default)]
    #[serde(rename = "stuck")]
    no_output_turn: Option<u64>,
    #[serde(default)]
    #[serde(rename = "modes")]
    turn_modes: Vec<String>,
    #[serde(rename = "born")]
    spawned_at: u64,
    #[serde(rename = "tracking")]
    tracking_task: Option<TaskId>,
    pane: Option<AgentPane>,
    #[serde(default)]
    #[serde(rename = "hidden")]
    is_hidden: bool,
    #[serde(rename = "join")]
    shim: Option<Process>,
    #[serde(rename = "agent")]
    agent_pid: Option<u32>,
    #[serde(default)]
    #[serde(rename = "asked")]
    shutdown_requests: Vec<RequestId>,
    #[serde(default)]
    #[serde(rename = "approved")]
    is_shutdown_approved: bool,
    #[serde(default)]
    #[serde(rename = "reported")]
    exit_report: Option<ExitReport>,
    #[serde(rename = "ended")]
    exit: Option<ExitRecord>,
}

impl From<&AgentRecord> for SavedRecord {
    fn from(record: &AgentRecord) -> SavedRecord {
        let process = record.lifecycle.process();
        SavedRecord {
            spawn_id: record.spawn_id.clone(),
            team: record.team.clone(),
            name: record.name.clone(),
            token: record.token.clone(),
            color: record.color,
            delivery: record.delivery,
            dialog_patterns: record.dialog_patterns.clone(),
            backend: record.backend,
            has_turns: record.has_turns,
            respawn: record.respawn.clone(),
            agent_type: record.agent_type.clone(),
            model: record.model.clone(),
            prompt: record.prompt.clone(),
            is_prompt_in_args: record.is_prompt_in_args,
            is_prompt_acknowledged: record.is_prompt_acknowledged,
            session: record.session.clone(),
            hook_state: record.hook_state.clone(),
            cwd: record.cwd.clone(),
            worktree: record.worktree.clone(),
            environment_file: record.environment_file.clone(),
            plan_mode_required: record.plan_mode_required,
            is_plan_approved: record.is_plan_approved,
            mode: record.mode.clone(),
            is_approval_in_args: record.is_approval_in_args,
            no_output_turn: record.no_output_turn,
            turn_modes: record.turn_modes.clone(),
            spawned_at: record.spawned_at,
            tracking_task: record.tracking_task,
            pane: record.pane.clone(),
            is_hidden: record.is_hidden,
            has_handover: process.handover.is_some(),
            is_suspended_on_exit: process.on_exit == OnExit::Suspend,
            is_forced: is_forced(&record.lifecycle),
            shim: process.shim,
            agent_pid: process.agent_pid,
            shutdown_requests: record.lifecycle.shutdown_ids().to_vec(),
            is_shutdown_approved: record.lifecycle.has_approved_shutdown(),
            exit_report: process.exit_report.clone(),
            exit: record.lifecycle.exit().cloned(),
        }
    }
}

fn is_forced(lifecycle: &Lifecycle) -> bool {
    matches!(
        lifecycle,
        Lifecycle::Stopping(Stopping { stage: StopStage::Terminating { cause: StopCause::Forced, .. }, .. })
    )
}

impl From<SavedRecord> for AgentRecord {
    fn from(saved: SavedRecord) -> AgentRecord {
        let lifecycle = saved.lifecycle();
        AgentRecord {
            spawn_id: saved.spawn_id,
            team: saved.team,
            name: saved.name,
            token: saved.token,
            color: saved.color,
            delivery: saved.delivery,
            dialog_patterns: saved.dialog_patterns,
            backend: saved.backend,
            has_turns: saved.has_turns,
            respawn: saved.respawn,
            agent_type: saved.agent_type,
            model: saved.model,
            prompt: saved.prompt,
            is_prompt_in_args: saved.is_prompt_in_args,
            is_prompt_acknowledged: saved.is_prompt_acknowledged,
            session: saved.session,
            hook_state: saved.hook_state,
            cwd: saved.cwd,
            worktree: saved.worktree,
            environment_file: saved.environment_file,
            plan_mode_required: saved.plan_mode_required,
            is_plan_approved: saved.is_plan_approved,
            mode: saved.mode,
            is_approval_in_args: saved.is_approval_in_args,
            no_output_turn: saved.no_output_turn,
            turn_modes: saved.turn_modes,
            spawned_at: saved.spawned_at,
            lifecycle,
            tracking_task: saved.tracking_task,
            pane: saved.pane,
            is_hidden: saved.is_hidden,
        }
    }
}

impl SavedRecord {
    /// The lifecycle that the keys stand for. Its deadlines are 0: recovery sets them.
    fn lifecycle(&self) -> Lifecycle {
        let process = AgentProcess {
            shim: self.shim,
            conn: None,
            agent_pid: self.agent_pid,
            exit_report: self.exit_report.clone(),
            on_exit: if self.is_suspended_on_exit { OnExit::Suspend } else { OnExit::ApplyRestartPolicy },
            handover: self.has_handover.then_some(Handover { deadline: 0 }),
        };
        let approval =
            if self.is_shutdown_approved { ShutdownApproval::Given } else { ShutdownApproval::NotGiven };
        let shutdown = ShutdownRequests { ids: self.shutdown_requests.clone(), approval };
        if let Some(exit) = &self.exit {
            return Lifecycle::Exited(Exited::new(process, shutdown, Some(exit.clone())));
        }
        match self.stop_stage() {
            Some(stage) => Lifecycle::Stopping(Stopping { process, shutdown, stage }),
            None => Lifecycle::Running(process),
        }
    }

    fn stop_stage(&self) -> Option<StopStage> {
        if self.is_shutdown_approved {
            return Some(StopStage::Approved { deadline: 0 });
        }
        if self.is_forced {
            return Some(StopStage::Terminating { cause: StopCause::Forced, deadline: 0 });
        }
        let without_approval = match self.is_suspended_on_exit {
            true => WithoutApproval::Terminate,
            false => WithoutApproval::KeepRunning,
        };
        let pending = PendingShutdown { reason: None, deadline: 0, resend_at: 0, without_approval };
        (!self.shutdown_requests.is_empty()).then_some(StopStage::Requested(pending))
    }
}
