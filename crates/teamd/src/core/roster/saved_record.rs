//! The records of agents, and of members that wait for a respawn, in the form in which roster.json
//! has them. Clients read some of the keys: see `protocol::roster_file`.

use crate::core::exit_record::ExitRecord;
use crate::core::id::SpawnId;
use crate::core::lifecycle::{
    AgentProcess, Exited, Handover, Lifecycle, OnExit, PendingShutdown, ShutdownApproval, ShutdownRequests,
    StopCause, StopStage, Stopping, WithoutApproval,
};
use crate::core::roster::record::{AgentPane, AgentRecord, ApprovalDelivery, HookState, PromptDelivery};
use crate::core::roster::respawn_record::{PendingRespawn, RespawnRecord, RespawnStart};
use protocol::color::Color;
use protocol::control::{Backend, ExitReport, Process, RestartPolicy, SpawnRequest};
use protocol::delivery::Delivery;
use protocol::id::{RequestId, TaskId};
use protocol::name::{AgentName, TeamName};
use protocol::permission_mode::PermissionMode;
use protocol::turn_program::{TurnProgram, Worker};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
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

/// An [`AgentRecord`] as roster.json has it. The file has no key for the lifecycle. Several keys
/// together describe it.
#[derive(Serialize, Deserialize)]
struct SavedRecord {
    spawn_id: SpawnId,
    team: TeamName,
    name: AgentName,
    token: String,
    color: Option<Color>,
    delivery: Delivery,
    #[serde(default)]
    dialog_patterns: Vec<String>,
    #[serde(default)]
    backend: Backend,
    #[serde(default)]
    has_turns: bool,
    #[serde(default)]
    respawn: Option<SavedRespawn>,
    agent_type: Option<String>,
    model: String,
    prompt: String,
    #[serde(default)]
    is_prompt_in_args: bool,
    #[serde(default)]
    is_prompt_acknowledged: bool,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    hook_state: HookState,
    cwd: PathBuf,
    #[serde(default)]
    worktree: Option<WorktreeRecord>,
    #[serde(default)]
    environment_file: String,
    plan_mode_required: bool,
    #[serde(default)]
    is_plan_approved: bool,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    has_handover: bool,
    #[serde(default)]
    is_suspended_on_exit: bool,
    #[serde(default)]
    is_forced: bool,
    #[serde(default)]
    is_approval_in_args: bool,
    #[serde(default)]
    no_output_turn: Option<u64>,
    #[serde(default)]
    turn_modes: Vec<String>,
    spawned_at: u64,
    tracking_task: Option<TaskId>,
    pane: Option<AgentPane>,
    #[serde(default)]
    is_hidden: bool,
    shim: Option<Process>,
    agent_pid: Option<u32>,
    #[serde(default)]
    shutdown_requests: Vec<RequestId>,
    #[serde(default)]
    is_shutdown_approved: bool,
    #[serde(default)]
    exit_report: Option<ExitReport>,
    exit: Option<ExitRecord>,
}

impl From<&AgentRecord> for SavedRecord {
    fn from(record: &AgentRecord) -> SavedRecord {
        let process = record.lifecycle.process();
        let request = &record.request;
        SavedRecord {
            spawn_id: record.spawn_id.clone(),
            team: request.team.clone(),
            name: request.name.clone(),
            token: record.token.clone(),
            color: record.color,
            delivery: request.delivery,
            dialog_patterns: request.dialog_patterns.clone(),
            backend: request.backend,
            has_turns: record.has_turns(),
            respawn: record.can_respawn().then(|| SavedRespawn::new(request, &record.respawn)),
            agent_type: request.agent_type.clone(),
            model: record.model(),
            prompt: request.prompt.clone(),
            is_prompt_in_args: record.prompt_delivery != PromptDelivery::Message,
            is_prompt_acknowledged: record.prompt_delivery == PromptDelivery::Acknowledged,
            session: record.session.clone(),
            hook_state: record.hook_state.clone(),
            cwd: request.cwd.clone(),
            worktree: record.worktree.clone(),
            environment_file: record.respawn.environment_file.clone(),
            plan_mode_required: record.requires_plan(),
            is_plan_approved: record.respawn.is_plan_approved,
            mode: record.config_mode.clone(),
            has_handover: process.handover.is_some(),
            is_suspended_on_exit: process.on_exit == OnExit::Suspend,
            is_forced: is_forced(&record.lifecycle),
            is_approval_in_args: record.approval_delivery == ApprovalDelivery::InArguments,
            no_output_turn: record.no_output_turn,
            turn_modes: record.turn_modes(),
            spawned_at: record.spawned_at,
            tracking_task: record.tracking_task,
            pane: record.pane.clone(),
            is_hidden: record.is_hidden,
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
    fn from(mut saved: SavedRecord) -> AgentRecord {
        let (lifecycle, prompt_delivery) = (saved.lifecycle(), saved.prompt_delivery());
        let (request, respawn) = match saved.respawn.take() {
            Some(respawn) => (respawn.request, respawn.record),
            None => (saved.request(), saved.final_respawn_record()),
        };
        AgentRecord {
            spawn_id: saved.spawn_id,
            request: Arc::new(request),
            respawn,
            token: saved.token,
            color: saved.color,
            prompt_delivery,
            approval_delivery: match saved.is_approval_in_args {
                true => ApprovalDelivery::InArguments,
                false => ApprovalDelivery::Message,
            },
            session: saved.session,
            hook_state: saved.hook_state,
            worktree: saved.worktree,
            config_mode: saved.mode,
            no_output_turn: saved.no_output_turn,
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
            on_exit: match (&self.respawn, self.is_suspended_on_exit) {
                (None, _) => OnExit::Deregister,
                (Some(_), true) => OnExit::Suspend,
                (Some(_), false) => OnExit::ApplyRestartPolicy,
            },
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
    fn prompt_delivery(&self) -> PromptDelivery {
        match (self.is_prompt_in_args, self.is_prompt_acknowledged) {
            (false, _) => PromptDelivery::Message,
            (true, false) => PromptDelivery::InArguments,
            (true, true) => PromptDelivery::Acknowledged,
        }
    }

    /// The parts of the spawn request that the roster keeps for a member that can't be respawned.
    /// These parts are not enough to spawn the member again.
    fn request(&self) -> SpawnRequest {
        SpawnRequest {
            team: self.team.clone(),
            name: self.name.clone(),
            unique: false,
            stand_in: None,
            argv: Vec::new(),
            has_deferred_variables: false,
            resume_argv: None,
            approved: BTreeMap::new(),
            prompt_in_args: self.is_prompt_in_args,
            cwd: self.cwd.clone(),
            env: BTreeMap::new(),
            prompt: self.prompt.clone(),
            agent_type: self.agent_type.clone(),
            model: Some(self.model.clone()).filter(|model| !model.is_empty()),
            mode: self.plan_mode_required.then(|| PermissionMode::Plan.to_string()),
            delivery: self.delivery,
            dialog_patterns: self.dialog_patterns.clone(),
            turns: self.has_turns.then(|| TurnProgram::Worker(Worker::default())),
            backend: self.backend,
            restart: RestartPolicy::Never,
            worktree: self.worktree.as_ref().map(|worktree| worktree.path.clone()),
        }
    }

    fn final_respawn_record(&self) -> RespawnRecord {
        RespawnRecord {
            environment_file: self.environment_file.clone(),
            is_plan_approved: self.is_plan_approved,
            ..RespawnRecord::default()
        }
    }
}

/// The value of the key `respawn`: the spawn request and the respawn record of a member. The
/// request has no environment here, because an environment may hold secrets.
#[derive(Serialize, Deserialize)]
struct SavedRespawn {
    request: SpawnRequest,
    #[serde(flatten)]
    record: RespawnRecord,
}

impl SavedRespawn {
    fn new(request: &SpawnRequest, record: &RespawnRecord) -> SavedRespawn {
        let request = SpawnRequest { env: BTreeMap::new(), ..request.clone() };
        SavedRespawn { request, record: record.clone() }
    }
}

/// A [`PendingRespawn`] with the keys of roster.json.
#[derive(Serialize, Deserialize)]
struct SavedPendingRespawn {
    respawn: SavedRespawn,
    respawn_at: u64,
    #[serde(default)]
    is_suspended: bool,
}

impl Serialize for PendingRespawn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let saved = SavedPendingRespawn {
            respawn: SavedRespawn::new(&self.request, &self.respawn),
            respawn_at: self.respawn_at,
            is_suspended: self.is_suspended(),
        };
        saved.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PendingRespawn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PendingRespawn, D::Error> {
        let saved = SavedPendingRespawn::deserialize(deserializer)?;
        Ok(PendingRespawn {
            request: Arc::new(saved.respawn.request),
            respawn: saved.respawn.record,
            respawn_at: saved.respawn_at,
            start: if saved.is_suspended { RespawnStart::WhenResumed } else { RespawnStart::At(0) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn fixture_agents() -> Vec<Value> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/roster-2.json");
        let roster: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        roster["records"].as_array().unwrap().clone()
    }

    /// Asserts that `after` has each key of `before` with the same value.
    fn assert_keeps(before: &Value, after: &Value) {
        match before {
            Value::Object(keys) => keys.iter().for_each(|(key, value)| assert_keeps(value, &after[key])),
            _ => assert_eq!(before, after),
        }
    }

    #[test]
    fn a_saved_record_keeps_every_key() {
        for agent in fixture_agents() {
            let record: AgentRecord = serde_json::from_value(agent.clone()).unwrap();
            assert_keeps(&agent, &serde_json::to_value(&record).unwrap());
        }
    }

    #[test]
    fn the_lifecycle_is_read_from_its_keys_and_written_to_them() {
        let exit = json!({"description": "exit 1", "outcome": "failed", "next_step": null, "ended_at": 7, "report_to": "lead"});
        let cases = [
            (json!({}), "disconnected"),
            (json!({"has_handover": true, "is_suspended_on_exit": true}), "disconnected"),
            (json!({"exit_report": "terminal_gone"}), "disconnected"),
            (json!({"shutdown_requests": ["shutdown-1@bob"]}), "stopping"),
            (json!({"shutdown_requests": ["shutdown-1@bob"], "is_shutdown_approved": true}), "stopping"),
            (json!({"is_forced": true}), "stopping"),
            (json!({"exit": exit}), "exited"),
        ];
        let bob = fixture_agents().pop().unwrap();
        for (keys, state) in cases {
            let mut saved = bob.clone();
            saved.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
            let record: AgentRecord = serde_json::from_value(saved.clone()).unwrap();
            assert_eq!(record.lifecycle.as_str(), state, "{keys}");
            assert_keeps(&saved, &serde_json::to_value(&record).unwrap());
        }
    }

    #[test]
    fn a_member_without_a_respawn_record_is_never_respawned() {
        let record: AgentRecord = serde_json::from_value(fixture_agents().remove(0)).unwrap();
        assert!(!record.can_respawn() && !record.is_respawn());
        assert_eq!(serde_json::to_value(&record).unwrap()["respawn"], Value::Null);
    }
}
