//! An agent that is run a turn at a time, as its join lives it: it looks at its mail and the tasks when it is woken, takes
//! one thing, and rests when there is nothing.

use crate::simulator::clients::CallOrigin;
use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::{AgentIdentity, ShimStage, SimulatedShim};
use crate::simulator::simulation::Simulation;
use crate::simulator::team_files::SimulatedTeamFiles;
use protocol::control::PlanStage;
use protocol::control::{
    Activity, FromShim, NextTaskHint, NextTaskRequest, Reply, Request, Response, TurnSetup, TurnStatus,
};
use protocol::id::{RequestId, TaskId};
use protocol::name::AgentName;
use protocol::payload::{IdleNotification, IdleReason, Payload, PlanApprovalRequest, PlanApprovalResponse};
use protocol::task::TaskStatus;
use protocol::usage::{Usage, UsageReport};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct SimulatedTurnAgent {
    pub(super) status: TurnStatus,
    /// It is to look: it was woken, or has not rested since its turn.
    pub(super) is_awake: bool,
    /// A turn is under way.
    pub(super) is_in_turn: bool,
    /// It has asked which task is next.
    pub(super) is_querying: bool,
    /// The task that the turn, or its plan, is about.
    task: Option<TaskId>,
    /// Its own, but what became of them could not be written.
    unsettled: BTreeSet<TaskId>,
    /// What it asked in this turn.
    open_requests: Vec<RequestId>,
}

impl SimulatedTurnAgent {
    pub(super) fn new(turns: &TurnSetup, wall: u64) -> SimulatedTurnAgent {
        let now = TurnStatus {
            activity: Activity::Active,
            since: wall,
            turn_number: 0,
            summary: String::new(),
            pid: None,
            idle_reason: None,
            session_id: turns.session_id.clone(),
            usage: None,
            mode: turns.mode,
            plan_stage: turns.plan_stage.clone(),
            shutdown_requested: false,
        };
        // A plan of the life before is handed in again, by its next turn.
        let plan = now.plan_stage.clone().map(|_| PlanStage::Planning);
        let now = TurnStatus { plan_stage: plan, ..now };
        let (task, unsettled, asked) = (None, BTreeSet::new(), Vec::new());
        SimulatedTurnAgent {
            status: now,
            is_awake: true,
            is_in_turn: false,
            is_querying: false,
            task,
            unsettled,
            open_requests: asked,
        }
    }

    fn awaits_answer(&self) -> bool {
        matches!(self.status.plan_stage, Some(PlanStage::AwaitingApproval { .. }))
    }

    /// Whether there is something that it should have taken up.
    pub(super) fn misses_work(&self, files: &SimulatedTeamFiles, name: &AgentName) -> bool {
        let task = || files.next_task(name, &self.unsettled);
        files.unread(name).next().is_some() || (!self.awaits_answer() && task().is_some())
    }
}

/// What a look has found.
enum NextItem {
    Message(u64, Box<Option<Payload>>),
    Task(TaskId),
    Nothing,
}

impl Simulation {
    fn turn_agent(&mut self, pid: u32) -> Option<(&mut SimulatedTurnAgent, AgentIdentity)> {
        let join = self.shims.get_mut(&pid)?;
        Some((join.turn_agent.as_mut()?, join.identity.clone()?))
    }

    /// It looks; for a task some ask the daemon first.
    pub(super) fn scan_or_query(&mut self, pid: u32) {
        let Some((turner, who)) = self.turn_agent(pid) else { return };
        let may_ask = !turner.awaits_answer() && turner.unsettled.is_empty();
        let letters =
            self.disk.teams.get(&who.team).is_some_and(|files| files.unread(&who.name).next().is_some());
        if may_ask && !letters && self.rng.bool() {
            let asked = NextTaskRequest { team: who.team, owner: who.name, include_in_progress: true };
            let asks =
                self.send_call_as(CallOrigin::TurnAgent(pid), None, Request::NextTask(asked)).is_some();
            if asks {
                // A wake that comes meanwhile is kept.
                return self
                    .turn_agent(pid)
                    .into_iter()
                    .for_each(|(it, _)| (it.is_querying, it.is_awake) = (true, false));
            }
        }
        self.scan_files(pid);
    }

    /// The daemon's word; that there is nothing is believed. A task that it can't have any more it asks for again.
    pub(super) fn handle_next_task(&mut self, pid: u32, response: &Response) {
        let Some((turner, who)) = self.turn_agent(pid).filter(|(turner, _)| turner.is_querying) else {
            return;
        };
        let woken = std::mem::replace(&mut turner.is_awake, true);
        turner.is_querying = false;
        let Response::Done(reply) = response else { return self.scan_files(pid) };
        match **reply {
            Reply::NextTask(NextTaskHint::NoTask) => {
                self.become_idle(pid);
                self.turn_agent(pid).into_iter().for_each(|(turner, _)| turner.is_awake |= woken);
            }
            Reply::NextTask(NextTaskHint::Task(id)) => {
                let files = self.disk.teams.get(&who.team);
                if files.is_some_and(|files| files.can_take_task(&who.name, id)) {
                    self.take_task(pid, &who, id);
                }
            }
            _ => self.scan_files(pid),
        }
    }

    /// At the files.
    pub(super) fn scan_files(&mut self, pid: u32) {
        let Some((turner, who)) = self.turn_agent(pid) else { return };
        (turner.is_querying, turner.is_awake) = (false, true);
        let (waits, unsettled) = (turner.awaits_answer(), turner.unsettled.clone());
        let Some(files) = self.disk.teams.get(&who.team) else { return self.become_idle(pid) };
        let task = || if waits { None } else { files.next_task(&who.name, &unsettled) };
        let found = match files.unread(&who.name).next() {
            Some(letter) => NextItem::Message(letter.id, Box::new(letter.payload.clone())),
            None => task().map_or(NextItem::Nothing, NextItem::Task),
        };
        match found {
            NextItem::Nothing => self.become_idle(pid),
            NextItem::Message(digest, payload) => self.handle_inbox_message(pid, &who, digest, *payload),
            NextItem::Task(id) => self.take_task(pid, &who, id),
        }
    }

    fn take_task(&mut self, pid: u32, who: &AgentIdentity, id: TaskId) {
        self.claim(who, id);
        if let Some((turner, _)) = self.turn_agent(pid) {
            turner.task = Some(id);
        }
        self.start_turn(pid, format!("task {id}: count"));
    }

    pub(super) fn claim(&mut self, who: &AgentIdentity, id: TaskId) {
        let files = self.disk.teams.get_mut(&who.team);
        files.into_iter().for_each(|files| {
            files.change_task(id, |task| {
                (task.status, task.owner) = (TaskStatus::InProgress, Some(who.name.clone()));
                task.metadata = None;
            });
        });
        self.disk.record_change(&who.team, TeamFile::Task(id));
    }

    fn handle_inbox_message(&mut self, pid: u32, who: &AgentIdentity, digest: u64, payload: Option<Payload>) {
        let Some(files) = self.disk.teams.get_mut(&who.team) else { return };
        files.mark_taken(&who.name, &[digest]);
        files.mark_read(&who.name, &[digest]);
        self.disk.record_change(&who.team, TeamFile::Inbox(who.name.clone()));
        let Some((turner, _)) = self.turn_agent(pid) else { return };
        match payload {
            None => self.start_turn(pid, "message from bob".to_owned()),
            Some(Payload::PlanApprovalResponse(answer)) => self.handle_plan_answer(pid, &answer),
            Some(Payload::ModeSetRequest(request)) if turner.status.plan_stage.is_none() => {
                turner.status.mode = request.mode.parse().ok();
                if request.mode == "plan" {
                    turner.status.plan_stage = Some(PlanStage::Planning);
                }
                self.send_turn_state(pid);
            }
            Some(_) => {}
        }
    }

    fn handle_plan_answer(&mut self, pid: u32, answer: &PlanApprovalResponse) {
        let Some((turner, _)) = self.turn_agent(pid) else { return };
        let its = matches!(&turner.status.plan_stage, Some(PlanStage::AwaitingApproval { request_id: request, .. }) if *request == answer.request_id);
        if its {
            turner.status.plan_stage = (!answer.approved).then_some(PlanStage::Planning);
            if let (true, Some(mode)) = (answer.approved, &answer.permission_mode) {
                turner.status.mode = mode.parse().ok();
            }
            self.start_turn(pid, "message from team-lead".to_owned());
        }
    }

    fn start_turn(&mut self, pid: u32, about: String) {
        let wall = self.now.wall;
        let Some((turner, who)) = self.turn_agent(pid) else { return };
        (turner.is_in_turn, turner.status.activity, turner.status.since) = (true, Activity::Active, wall);
        (turner.status.summary, turner.status.pid, turner.status.idle_reason) = (about, Some(pid), None);
        turner.status.turn_number += 1;
        turner.status.session_id = Some(format!("session of {}", who.spawn_request_id));
        self.send_turn_state(pid);
    }

    /// Says once that there is nothing to do, looks once more, then sleeps.
    fn become_idle(&mut self, pid: u32) {
        let wall = self.now.wall;
        let Some((turner, who)) = self.turn_agent(pid) else { return };
        if turner.status.activity == Activity::Idle {
            turner.is_awake = false;
            return;
        }
        (turner.status.activity, turner.status.since, turner.status.pid) = (Activity::Idle, wall, None);
        turner.status.summary.clear();
        self.add_usage(pid, &who);
        self.send_turn_state(pid);
    }

    /// Its program tells all that its session has used up, whichever life that began in.
    fn add_usage(&mut self, pid: u32, who: &AgentIdentity) {
        let tokens = self.token_usage.entry(who.spawn_request_id.clone()).or_default();
        *tokens += 7;
        let used = Usage { tokens: *tokens, ..Usage::default() };
        if let Some((turner, _)) = self.turn_agent(pid) {
            turner.status.usage =
                Some(UsageReport { session_id: turner.status.session_id.clone(), usage: used });
        }
    }

    fn send_turn_state(&mut self, pid: u32) {
        let Some(join) = self.shims.get(&pid) else { return };
        let (conn, turner) = (join.conn, join.turn_agent.as_ref());
        let now = turner.map(|turner| FromShim::TurnStatus(turner.status.clone()));
        now.into_iter().for_each(|now| self.send_report(conn, now));
    }

    /// In the middle of its turn it asks for permission.
    pub(super) fn request_permission_in_turn(&mut self, pid: u32) {
        let Some((_, who)) = self.turn_agent(pid).filter(|(turner, _)| turner.is_in_turn) else { return };
        let Some(id) = self.request_permission(&who) else { return };
        self.turn_agent(pid).into_iter().for_each(|(turner, _)| turner.open_requests.push(id.clone()));
    }

    /// Its turn ends, and how; false where none was under way.
    pub(super) fn end_turn(&mut self, pid: u32, reason: IdleReason) -> bool {
        let Some((turner, who)) = self.turn_agent(pid).filter(|(turner, _)| turner.is_in_turn) else {
            return false;
        };
        (turner.is_in_turn, turner.is_awake, turner.status.idle_reason) = (false, true, Some(reason));
        let (asked, plans) = (
            std::mem::take(&mut turner.open_requests),
            turner.status.plan_stage == Some(PlanStage::Planning),
        );
        let task = if plans && reason == IdleReason::Available { None } else { turner.task.take() };
        self.log(|| format!("the turn of {}@{} ends: {reason:?}", who.name, who.team));
        asked.iter().for_each(|id| self.withdraw_request(&who, id));
        if plans && reason == IdleReason::Available {
            self.submit_plan(pid, &who);
        }
        if let Some(id) = task
            && !self.finish_task(&who, id, reason)
            && let Some((turner, _)) = self.turn_agent(pid)
        {
            turner.unsettled.insert(id);
        }
        self.notify_lead(&who, reason);
        true
    }

    /// What became of its task, unless that is another's by now; false where it can't be written.
    pub(super) fn finish_task(&mut self, who: &AgentIdentity, id: TaskId, reason: IdleReason) -> bool {
        if self.disk.is_full {
            return false;
        }
        let files = self.disk.teams.get_mut(&who.team);
        let changed = files.is_some_and(|files| {
            files.change_task(id, |task| {
                let hers = task.owner.as_ref() == Some(&who.name) && task.status == TaskStatus::InProgress;
                match reason {
                    _ if !hers => {}
                    IdleReason::Available => task.status = TaskStatus::Completed,
                    _ => {
                        task.metadata = Some(Map::from_iter([("failure".to_owned(), Value::from("exit 1"))]));
                    }
                }
            })
        });
        if changed {
            self.disk.record_change(&who.team, TeamFile::Task(id));
        }
        true
    }

    pub(super) fn notify_lead(&mut self, who: &AgentIdentity, reason: IdleReason) {
        let idle = IdleNotification {
            from: who.name.to_string(),
            timestamp: String::new(),
            idle_reason: reason,
            summary: None,
            completed_task_id: None,
            completed_status: None,
            failure_reason: None,
        };
        let at = self.now.wall;
        self.disk.send(&who.team, &AgentName::lead(), &who.name, Some(Payload::IdleNotification(idle)), at);
    }

    fn submit_plan(&mut self, pid: u32, who: &AgentIdentity) {
        let Some(request) = self.write_plan_request(who) else { return };
        if let Some((turner, _)) = self.turn_agent(pid) {
            turner.status.plan_stage =
                Some(PlanStage::AwaitingApproval { request_id: request, file: "plan.md".to_owned() });
        }
    }

    /// A plan is handed in; none where that can't be written.
    pub(super) fn write_plan_request(&mut self, who: &AgentIdentity) -> Option<RequestId> {
        let id = RequestId::parse(&format!("plan-{}", self.next_pid())).ok()?;
        let plan = PlanApprovalRequest {
            from: who.name.to_string(),
            timestamp: String::new(),
            plan_file_path: String::new(),
            plan_content: "count".to_owned(),
            request_id: id.clone(),
        };
        let at = self.now.wall;
        let sent = self.disk.send(
            &who.team,
            &AgentName::lead(),
            &who.name,
            Some(Payload::PlanApprovalRequest(plan)),
            at,
        );
        self.record_request(who, &id).filter(|()| sent).map(|()| id)
    }

    /// Somebody's turn that is under way.
    pub(super) fn agent_in_turn(&self) -> Option<u32> {
        let turning = |join: &SimulatedShim| {
            join.is_alive() && join.turn_agent.as_ref().is_some_and(|turner| turner.is_in_turn)
        };
        self.running_shims().find(|(_, join)| turning(join)).map(|(pid, _)| *pid)
    }

    /// It ends well.
    pub(super) fn end_any_turn(&mut self) {
        if let Some(pid) = self.agent_in_turn() {
            self.end_turn(pid, IdleReason::Available);
        }
    }

    /// Whoever runs.
    pub(super) fn agent_identity(&self, pid: u32) -> Option<AgentIdentity> {
        self.shims.get(&pid).filter(|join| matches!(join.stage, ShimStage::Running { .. }))?.identity.clone()
    }
}
