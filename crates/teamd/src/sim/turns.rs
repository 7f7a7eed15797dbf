//! An agent that is run a turn at a time, as its join lives it: it looks at its mail and the tasks when it is woken, takes
//! one thing, and rests when there is nothing.

use super::clients::Asker;
use super::join::{Join, Stage, Who};
use super::letters::Files;
use super::looks::Part;
use super::world::World;
use protocol::control::{
    Activity, FromShim, NextTaskHint, NextTaskRequest, Reply, Request, Response, TurnSetup, TurnStatus,
};
use protocol::id::{RequestId, TaskId};
use protocol::name::AgentName;
use protocol::payload::{IdleNotification, IdleReason, Payload, PlanApprovalRequest, PlanApprovalResponse};
use protocol::task::TaskStatus;
use protocol::turn_program::PlanStage;
use protocol::usage::{Usage, UsageReport};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Turner {
    pub(super) now: TurnStatus,
    /// It is to look: it was woken, or has not rested since its turn.
    pub(super) awake: bool,
    /// A turn is under way.
    pub(super) turn: bool,
    /// It has asked which task is next.
    pub(super) asks: bool,
    /// The task that the turn, or its plan, is about.
    task: Option<TaskId>,
    /// Its own, but what became of them could not be written.
    unsettled: BTreeSet<TaskId>,
    /// What it asked in this turn.
    asked: Vec<RequestId>,
}

impl Turner {
    pub(super) fn new(turns: &TurnSetup, wall: u64) -> Turner {
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
        Turner { now, awake: true, turn: false, asks: false, task, unsettled, asked }
    }

    fn waits(&self) -> bool {
        matches!(self.now.plan_stage, Some(PlanStage::AwaitingApproval { .. }))
    }

    /// Whether there is something that it should have taken up.
    pub(super) fn overlooks(&self, files: &Files, name: &AgentName) -> bool {
        let task = || files.next_task(name, &self.unsettled);
        files.unread(name).next().is_some() || (!self.waits() && task().is_some())
    }
}

/// What a look has found.
enum Found {
    Letter(u64, Box<Option<Payload>>),
    Task(TaskId),
    Nothing,
}

impl World {
    fn turner(&mut self, pid: u32) -> Option<(&mut Turner, Who)> {
        let join = self.joins.get_mut(&pid)?;
        Some((join.turner.as_mut()?, join.who.clone()?))
    }

    /// It looks; for a task some ask the daemon first.
    pub(super) fn looks(&mut self, pid: u32) {
        let Some((turner, who)) = self.turner(pid) else { return };
        let may_ask = !turner.waits() && turner.unsettled.is_empty();
        let letters =
            self.disk.teams.get(&who.team).is_some_and(|files| files.unread(&who.name).next().is_some());
        if may_ask && !letters && self.rng.bool() {
            let asked = NextTaskRequest { team: who.team, owner: who.name, include_in_progress: true };
            let asks = self.ask_as(Asker::Turner(pid), None, Request::NextTask(asked)).is_some();
            if asks {
                // A wake that comes meanwhile is kept.
                return self.turner(pid).into_iter().for_each(|(it, _)| (it.asks, it.awake) = (true, false));
            }
        }
        self.looks_itself(pid);
    }

    /// The daemon's word; that there is nothing is believed. A task that it can't have any more it asks for again.
    pub(super) fn is_told(&mut self, pid: u32, response: &Response) {
        let Some((turner, who)) = self.turner(pid).filter(|(turner, _)| turner.asks) else { return };
        let woken = std::mem::replace(&mut turner.awake, true);
        turner.asks = false;
        let Response::Done(reply) = response else { return self.looks_itself(pid) };
        match **reply {
            Reply::NextTask(NextTaskHint::NoTask) => {
                self.rests_for_now(pid);
                self.turner(pid).into_iter().for_each(|(turner, _)| turner.awake |= woken);
            }
            Reply::NextTask(NextTaskHint::Task(id)) => {
                let files = self.disk.teams.get(&who.team);
                if files.is_some_and(|files| files.may_take(&who.name, id)) {
                    self.takes(pid, &who, id);
                }
            }
            _ => self.looks_itself(pid),
        }
    }

    /// At the files.
    pub(super) fn looks_itself(&mut self, pid: u32) {
        let Some((turner, who)) = self.turner(pid) else { return };
        (turner.asks, turner.awake) = (false, true);
        let (waits, unsettled) = (turner.waits(), turner.unsettled.clone());
        let Some(files) = self.disk.teams.get(&who.team) else { return self.rests_for_now(pid) };
        let task = || if waits { None } else { files.next_task(&who.name, &unsettled) };
        let found = match files.unread(&who.name).next() {
            Some(letter) => Found::Letter(letter.digest, Box::new(letter.payload.clone())),
            None => task().map_or(Found::Nothing, Found::Task),
        };
        match found {
            Found::Nothing => self.rests_for_now(pid),
            Found::Letter(digest, payload) => self.has_letter(pid, &who, digest, *payload),
            Found::Task(id) => self.takes(pid, &who, id),
        }
    }

    fn takes(&mut self, pid: u32, who: &Who, id: TaskId) {
        self.claim(who, id);
        if let Some((turner, _)) = self.turner(pid) {
            turner.task = Some(id);
        }
        self.begins(pid, format!("task {id}: count"));
    }

    pub(super) fn claim(&mut self, who: &Who, id: TaskId) {
        let files = self.disk.teams.get_mut(&who.team);
        files.into_iter().for_each(|files| {
            files.change(id, |task| {
                (task.status, task.owner) = (TaskStatus::InProgress, Some(who.name.clone()));
                task.metadata = None;
            });
        });
        self.disk.touch(&who.team, Part::Task(id));
    }

    fn has_letter(&mut self, pid: u32, who: &Who, digest: u64, payload: Option<Payload>) {
        let Some(files) = self.disk.teams.get_mut(&who.team) else { return };
        files.take(&who.name, &[digest]);
        files.mark(&who.name, &[digest]);
        self.disk.touch(&who.team, Part::Inbox(who.name.clone()));
        let Some((turner, _)) = self.turner(pid) else { return };
        match payload {
            None => self.begins(pid, "message from bob".to_owned()),
            Some(Payload::PlanApprovalResponse(answer)) => self.has_verdict(pid, &answer),
            Some(Payload::ModeSetRequest(request)) if turner.now.plan_stage.is_none() => {
                turner.now.mode = request.mode.parse().ok();
                if request.mode == "plan" {
                    turner.now.plan_stage = Some(PlanStage::Planning);
                }
                self.tells(pid);
            }
            Some(_) => {}
        }
    }

    fn has_verdict(&mut self, pid: u32, answer: &PlanApprovalResponse) {
        let Some((turner, _)) = self.turner(pid) else { return };
        let its = matches!(&turner.now.plan_stage, Some(PlanStage::AwaitingApproval { request_id: request, .. }) if *request == answer.request_id);
        if its {
            turner.now.plan_stage = (!answer.approved).then_some(PlanStage::Planning);
            if let (true, Some(mode)) = (answer.approved, &answer.permission_mode) {
                turner.now.mode = mode.parse().ok();
            }
            self.begins(pid, "message from team-lead".to_owned());
        }
    }

    fn begins(&mut self, pid: u32, about: String) {
        let wall = self.now.wall;
        let Some((turner, who)) = self.turner(pid) else { return };
        (turner.turn, turner.now.activity, turner.now.since) = (true, Activity::Active, wall);
        (turner.now.summary, turner.now.pid, turner.now.idle_reason) = (about, Some(pid), None);
        turner.now.turn_number += 1;
        turner.now.session_id = Some(format!("session of {}", who.chain));
        self.tells(pid);
    }

    /// Says once that there is nothing to do, looks once more, then sleeps.
    fn rests_for_now(&mut self, pid: u32) {
        let wall = self.now.wall;
        let Some((turner, who)) = self.turner(pid) else { return };
        if turner.now.activity == Activity::Idle {
            turner.awake = false;
            return;
        }
        (turner.now.activity, turner.now.since, turner.now.pid) = (Activity::Idle, wall, None);
        turner.now.summary.clear();
        self.uses_up(pid, &who);
        self.tells(pid);
    }

    /// Its program tells all that its session has used up, whichever life that began in.
    fn uses_up(&mut self, pid: u32, who: &Who) {
        let tokens = self.used.entry(who.chain.clone()).or_default();
        *tokens += 7;
        let used = Usage { tokens: *tokens, ..Usage::default() };
        if let Some((turner, _)) = self.turner(pid) {
            turner.now.usage = Some(UsageReport { session_id: turner.now.session_id.clone(), usage: used });
        }
    }

    fn tells(&mut self, pid: u32) {
        let Some(join) = self.joins.get(&pid) else { return };
        let (conn, turner) = (join.conn, join.turner.as_ref());
        let now = turner.map(|turner| FromShim::TurnStatus(turner.now.clone()));
        now.into_iter().for_each(|now| self.report(conn, now));
    }

    /// In the middle of its turn it asks for permission.
    pub(super) fn asks_in_turn(&mut self, pid: u32) {
        let Some((_, who)) = self.turner(pid).filter(|(turner, _)| turner.turn) else { return };
        let Some(id) = self.asks_permission(&who) else { return };
        self.turner(pid).into_iter().for_each(|(turner, _)| turner.asked.push(id.clone()));
    }

    /// Its turn ends, and how; false where none was under way.
    pub(super) fn turn_ends(&mut self, pid: u32, reason: IdleReason) -> bool {
        let Some((turner, who)) = self.turner(pid).filter(|(turner, _)| turner.turn) else { return false };
        (turner.turn, turner.awake, turner.now.idle_reason) = (false, true, Some(reason));
        let (asked, plans) =
            (std::mem::take(&mut turner.asked), turner.now.plan_stage == Some(PlanStage::Planning));
        let task = if plans && reason == IdleReason::Available { None } else { turner.task.take() };
        self.note(|| format!("the turn of {}@{} ends: {reason:?}", who.name, who.team));
        asked.iter().for_each(|id| self.takes_back(&who, id));
        if plans && reason == IdleReason::Available {
            self.hands_in(pid, &who);
        }
        if let Some(id) = task
            && !self.settles(&who, id, reason)
            && let Some((turner, _)) = self.turner(pid)
        {
            turner.unsettled.insert(id);
        }
        self.tells_lead(&who, reason);
        true
    }

    /// What became of its task, unless that is another's by now; false where it can't be written.
    pub(super) fn settles(&mut self, who: &Who, id: TaskId, reason: IdleReason) -> bool {
        if self.disk.full {
            return false;
        }
        let files = self.disk.teams.get_mut(&who.team);
        let changed = files.is_some_and(|files| {
            files.change(id, |task| {
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
            self.disk.touch(&who.team, Part::Task(id));
        }
        true
    }

    pub(super) fn tells_lead(&mut self, who: &Who, reason: IdleReason) {
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

    fn hands_in(&mut self, pid: u32, who: &Who) {
        let Some(request) = self.asks_for_approval(who) else { return };
        if let Some((turner, _)) = self.turner(pid) {
            turner.now.plan_stage =
                Some(PlanStage::AwaitingApproval { request_id: request, file: "plan.md".to_owned() });
        }
    }

    /// A plan is handed in; none where that can't be written.
    pub(super) fn asks_for_approval(&mut self, who: &Who) -> Option<RequestId> {
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
        self.asked(who, &id).filter(|()| sent).map(|()| id)
    }

    /// Somebody's turn that is under way.
    pub(super) fn turning(&self) -> Option<u32> {
        let turning = |join: &Join| join.lives() && join.turner.as_ref().is_some_and(|turner| turner.turn);
        self.runs().find(|(_, join)| turning(join)).map(|(pid, _)| *pid)
    }

    /// It ends well.
    pub(super) fn turns_end(&mut self) {
        if let Some(pid) = self.turning() {
            self.turn_ends(pid, IdleReason::Available);
        }
    }

    /// Whoever runs.
    pub(super) fn who(&self, pid: u32) -> Option<Who> {
        self.joins.get(&pid).filter(|join| matches!(join.stage, Stage::Runs { .. }))?.who.clone()
    }
}
