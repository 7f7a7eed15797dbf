//! Simulates the turn loop of agents with `turn` delivery. When the daemon wakes such an agent, its
//! shim scans the inbox and the tasks. The shim starts a turn for one message or task, or reports
//! the agent as idle if there is none.

use crate::simulator::scan_memory::TeamFile;
use crate::simulator::shim::AgentIdentity;

use crate::simulator::simulation::{Conditions, Simulation};
use crate::simulator::team_files::SimulatedMessage;
use crate::simulator::turn_agent_state::SimulatedTurnAgent;
use protocol::control_socket::PlanStage;
use protocol::control_socket::{Activity, FromShim, NextTaskHint, NextTaskRequest, Reply, Request, Response};
use protocol::inbox_message_payload::{
    IdleNotification, IdleReason, Payload, PlanApprovalRequest, PlanApprovalResponse,
};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::token_and_cost_usage::{Usage, UsageReport};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The result of a scan: what the next turn is for.
enum NextItem {
    Message(Box<SimulatedMessage>),
    Task(TaskId),
    Nothing,
}

impl<C: Conditions> Simulation<C> {
    pub(super) fn turn_agent(&mut self, pid: u32) -> Option<(&mut SimulatedTurnAgent, AgentIdentity)> {
        let shim = self.shims.get_mut(&pid)?;
        Some((shim.turn_agent.as_mut()?, shim.identity.clone()?))
    }

    /// Scans for the next item. Some shims ask the daemon for a task first.
    pub(super) fn scan_or_query(&mut self, pid: u32) {
        let Some((turn_agent, identity)) = self.turn_agent(pid) else { return };
        let may_query = !turn_agent.awaits_answer() && turn_agent.tasks_without_result.is_empty();
        if may_query && self.next_message(&identity).is_none() && self.conditions.is_first_outcome() {
            let query =
                NextTaskRequest { team: identity.team, owner: identity.name, include_in_progress: true };
            let is_sent =
                self.send_call_as(C::turn_agent_caller(pid), None, Request::NextTask(query)).is_some();
            if is_sent {
                // A wake before the reply sets `is_awake` again.
                return self.turn_agent(pid).into_iter().for_each(|(turn_agent, _)| {
                    (turn_agent.is_querying, turn_agent.is_awake) = (true, false);
                });
            }
        }
        self.scan_files(pid);
    }

    /// Handles the daemon's hint about the next task. If another member has taken the task already,
    /// the shim asks for another hint. If there is no task, the agent becomes idle.
    pub(super) fn handle_next_task(&mut self, pid: u32, response: &Response) {
        let Some((turn_agent, identity)) =
            self.turn_agent(pid).filter(|(turn_agent, _)| turn_agent.is_querying)
        else {
            return;
        };
        let was_woken = std::mem::replace(&mut turn_agent.is_awake, true);
        turn_agent.is_querying = false;
        let Response::Done(reply) = response else { return self.scan_files(pid) };
        match **reply {
            Reply::NextTask(NextTaskHint::NoTask) => {
                self.become_idle(pid);
                self.turn_agent(pid).into_iter().for_each(|(turn_agent, _)| turn_agent.is_awake |= was_woken);
            }
            Reply::NextTask(NextTaskHint::Task(id)) => {
                let files = self.disk.teams.get(&identity.team);
                if files.is_some_and(|files| files.can_take_task(&identity.name, id)) {
                    self.take_task(pid, &identity, id);
                }
            }
            _ => self.scan_files(pid),
        }
    }

    /// The next message for an agent.
    pub(super) fn next_message(&self, identity: &AgentIdentity) -> Option<&SimulatedMessage> {
        let may_take_text = self.conditions.may_take_message(&identity.name, self.now.mono);
        let mut unread = self.disk.teams.get(&identity.team)?.unread(&identity.name);
        unread.find(|message| message.payload.is_some() || may_take_text)
    }

    /// Scans the files for the next item, and starts a turn for it or becomes idle.
    pub(super) fn scan_files(&mut self, pid: u32) {
        let Some((turn_agent, identity)) = self.turn_agent(pid) else { return };
        (turn_agent.is_querying, turn_agent.is_awake) = (false, true);
        let (awaits_answer, tasks_without_result) =
            (turn_agent.awaits_answer(), turn_agent.tasks_without_result.clone());
        let Some(files) = self.disk.teams.get(&identity.team) else { return self.become_idle(pid) };
        let task =
            || if awaits_answer { None } else { files.next_task(&identity.name, &tasks_without_result) };
        let next_item = match self.next_message(&identity) {
            Some(message) => NextItem::Message(Box::new(message.clone())),
            None => task().map_or(NextItem::Nothing, NextItem::Task),
        };
        match next_item {
            NextItem::Nothing => self.become_idle(pid),
            NextItem::Message(message) => self.handle_inbox_message(pid, &identity, *message),
            NextItem::Task(id) => self.take_task(pid, &identity, id),
        }
    }

    fn take_task(&mut self, pid: u32, identity: &AgentIdentity, id: TaskId) {
        self.claim(identity, id);
        if let Some((turn_agent, _)) = self.turn_agent(pid) {
            turn_agent.task = Some(id);
        }
        self.start_turn(pid, format!("task {id}: count"));
    }

    pub(super) fn claim(&mut self, identity: &AgentIdentity, id: TaskId) {
        let files = self.disk.teams.get_mut(&identity.team);
        files.into_iter().for_each(|files| {
            files.change_task(id, |task| {
                (task.status, task.owner) = (TaskStatus::InProgress, Some(identity.name.clone()));
                task.metadata = None;
            });
        });
        self.disk.record_change(&identity.team, TeamFile::Task(id));
    }

    fn handle_inbox_message(&mut self, pid: u32, identity: &AgentIdentity, message: SimulatedMessage) {
        let Some(files) = self.disk.teams.get_mut(&identity.team) else { return };
        files.mark_delivered(&identity.name, &[message.id]);
        files.mark_read(&identity.name, &[message.id]);
        self.disk.record_change(&identity.team, TeamFile::Inbox(identity.name.clone()));
        let Some((turn_agent, _)) = self.turn_agent(pid) else { return };
        match message.payload {
            None => self.start_turn(pid, format!("message from {}", message.from)),
            Some(Payload::PlanApprovalResponse(answer)) => self.handle_plan_answer(pid, &answer),
            Some(Payload::ModeSetRequest(request)) if turn_agent.status.plan_stage.is_none() => {
                turn_agent.status.mode = request.mode.parse().ok();
                if request.mode == "plan" {
                    turn_agent.status.plan_stage = Some(PlanStage::Planning);
                }
                self.send_turn_state(pid);
            }
            Some(_) => {}
        }
    }

    fn handle_plan_answer(&mut self, pid: u32, answer: &PlanApprovalResponse) {
        let Some((turn_agent, _)) = self.turn_agent(pid) else { return };
        let is_for_open_plan = matches!(
            &turn_agent.status.plan_stage,
            Some(PlanStage::AwaitingApproval { request_id, .. }) if *request_id == answer.request_id
        );
        if is_for_open_plan {
            turn_agent.status.plan_stage = (!answer.approved).then_some(PlanStage::Planning);
            if let (true, Some(mode)) = (answer.approved, &answer.permission_mode) {
                turn_agent.status.mode = mode.parse().ok();
            }
            self.start_turn(pid, "message from team-lead".to_owned());
        }
    }

    fn start_turn(&mut self, pid: u32, summary: String) {
        let wall = self.now.wall;
        let Some((turn_agent, identity)) = self.turn_agent(pid) else { return };
        (turn_agent.is_in_turn, turn_agent.status.activity, turn_agent.status.since) =
            (true, Activity::Active, wall);
        (turn_agent.status.summary, turn_agent.status.pid, turn_agent.status.idle_reason) =
            (summary, Some(pid), None);
        turn_agent.status.turn_number += 1;
        turn_agent.status.session_id = Some(format!("session of {}", identity.spawn_request_id));
        self.send_turn_state(pid);
    }

    /// Reports once that the agent is idle. The shim sleeps after the next scan without a result.
    pub(super) fn become_idle(&mut self, pid: u32) {
        let wall = self.now.wall;
        let Some((turn_agent, identity)) = self.turn_agent(pid) else { return };
        if turn_agent.status.activity == Activity::Idle {
            turn_agent.is_awake = false;
            return;
        }
        (turn_agent.status.activity, turn_agent.status.since, turn_agent.status.pid) =
            (Activity::Idle, wall, None);
        turn_agent.status.summary.clear();
        self.add_usage(pid, &identity);
        self.send_turn_state(pid);
    }

    /// The program reports the usage of its whole session, which may span several spawns.
    fn add_usage(&mut self, pid: u32, identity: &AgentIdentity) {
        let tokens = self.token_usage.entry(identity.spawn_request_id.clone()).or_default();
        *tokens += 7;
        let usage = Usage { tokens: *tokens, ..Usage::default() };
        if let Some((turn_agent, _)) = self.turn_agent(pid) {
            turn_agent.status.usage =
                Some(UsageReport { session_id: turn_agent.status.session_id.clone(), usage });
        }
    }

    fn send_turn_state(&mut self, pid: u32) {
        let conn = self.shims.get(&pid).and_then(|shim| shim.conn);
        let Some((turn_agent, identity)) = self.turn_agent(pid) else { return };
        let mut status = turn_agent.status.clone();
        self.conditions.complete_status(&identity.name, &mut status);
        self.send_report(conn, FromShim::TurnStatus(status));
    }

    /// Ends the turn of an agent. Returns false if no turn is running.
    pub(super) fn end_turn(&mut self, pid: u32, reason: IdleReason) -> bool {
        let Some((turn_agent, identity)) =
            self.turn_agent(pid).filter(|(turn_agent, _)| turn_agent.is_in_turn)
        else {
            return false;
        };
        (turn_agent.is_in_turn, turn_agent.is_awake, turn_agent.status.idle_reason) =
            (false, true, Some(reason));
        let is_planning = turn_agent.status.plan_stage == Some(PlanStage::Planning);
        let task = if is_planning && reason == IdleReason::Available { None } else { turn_agent.task.take() };
        self.log(|| format!("the turn of {}@{} ends: {reason:?}", identity.name, identity.team));
        C::turn_ended(self, pid, &identity);
        if is_planning && reason == IdleReason::Available {
            self.submit_plan(pid, &identity);
        }
        if let Some(id) = task
            && !self.finish_task(&identity, id, reason)
            && let Some((turn_agent, _)) = self.turn_agent(pid)
        {
            turn_agent.tasks_without_result.insert(id);
        }
        self.notify_lead(&identity, reason);
        true
    }

    /// Writes the result of a task, unless another member owns the task by now. Returns false if
    /// the disk is full and nothing was written.
    pub(super) fn finish_task(&mut self, identity: &AgentIdentity, id: TaskId, reason: IdleReason) -> bool {
        if self.disk.is_full {
            return false;
        }
        let files = self.disk.teams.get(&identity.team).into_iter();
        let is_open = |task: &Arc<Task>| task.id == id && task.status == TaskStatus::InProgress;
        let is_in_work = files.flat_map(|files| &files.tasks).any(is_open);
        let result = if is_in_work { self.conditions.take_result(id) } else { None };
        let files = self.disk.teams.get_mut(&identity.team);
        let is_changed = files.is_some_and(|files| {
            files.change_task(id, |task| {
                let is_own =
                    task.owner.as_ref() == Some(&identity.name) && task.status == TaskStatus::InProgress;
                match (result, reason) {
                    _ if !is_own => {}
                    (Some(result), _) => (task.status, task.metadata) = (result.status, result.metadata),
                    (None, IdleReason::Available) => task.status = TaskStatus::Completed,
                    (None, _) => {
                        task.metadata = Some(Map::from_iter([("failure".to_owned(), Value::from("exit 1"))]));
                    }
                }
            })
        });
        if is_changed {
            self.disk.record_change(&identity.team, TeamFile::Task(id));
        }
        true
    }

    pub(super) fn notify_lead(&mut self, identity: &AgentIdentity, reason: IdleReason) {
        let idle = IdleNotification {
            from: identity.name.to_string(),
            timestamp: String::new(),
            idle_reason: reason,
            summary: None,
            completed_task_id: None,
            completed_status: None,
            failure_reason: None,
        };
        let at = self.now.wall;
        self.disk.send(
            &identity.team,
            &MemberName::lead(),
            &identity.name,
            Some(Payload::IdleNotification(idle)),
            at,
        );
    }

    fn submit_plan(&mut self, pid: u32, identity: &AgentIdentity) {
        let Some(request) = self.write_plan_request(identity) else { return };
        if let Some((turn_agent, _)) = self.turn_agent(pid) {
            turn_agent.status.plan_stage =
                Some(PlanStage::AwaitingApproval { request_id: request, file: "plan.md".to_owned() });
        }
    }

    /// Sends a plan approval request. `None` if it cannot be written.
    pub(super) fn write_plan_request(&mut self, identity: &AgentIdentity) -> Option<RequestId> {
        let id = RequestId::parse(&format!("plan-{}", self.next_pid())).ok()?;
        let plan = PlanApprovalRequest {
            from: identity.name.to_string(),
            timestamp: String::new(),
            plan_file_path: String::new(),
            plan_content: "count".to_owned(),
            request_id: id.clone(),
        };
        let at = self.now.wall;
        let is_sent = self.disk.send(
            &identity.team,
            &MemberName::lead(),
            &identity.name,
            Some(Payload::PlanApprovalRequest(plan)),
            at,
        );
        C::request_sent(self, identity, &id);
        is_sent.then_some(id)
    }
}
