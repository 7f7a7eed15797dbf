//! Turns the record of a team into a script for a replay. The script has what people and agents
//! did, and when. It also has the recorded event log, with which the replay's events are compared.

use crate::simulator::replay::comparable_history::TimedEvent;
use crate::simulator::replay::parse_record::ParsedRecord;
use crate::simulator::replay::replayed_agents::{RecordedStatus, ReplayedAgents};
use crate::simulator::turn_agent_state::TaskResult;
use protocol::control_socket::{Activity, ExitReport, FromShim, Request, TurnStatus};
use protocol::event_log_line::EventKind;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{IdleReason, Payload, ShutdownApproved};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::policy::AnsweredBy;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_record_line::RecordEntry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What people and agents did in a recorded team. Times are in milliseconds since the first line.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) team: TeamName,
    /// Everything from outside the daemon that belongs to no turn, in its order.
    pub(super) actions: VecDeque<(u64, OutsideAction)>,
    /// The turns of each member whose turns a shim runs.
    pub(super) turns: BTreeMap<MemberName, Vec<ScriptedTurn>>,
    /// What the shims report. Times are as in the other fields.
    pub(super) replayed: ReplayedAgents,
    /// The recorded event log of the team.
    pub(super) events: Vec<TimedEvent>,
    /// How many lines the record has.
    pub(super) lines: usize,
    /// The time of the last line.
    pub(super) end: u64,
}

/// One action from outside the daemon.
#[derive(Debug)]
pub(super) enum OutsideAction {
    Call { caller: Option<MemberName>, request: Box<Request> },
    WriteTask(Box<Task>),
    RemoveTask(TaskId),
    Send { inbox: MemberName, message: Message },
    Exit { member: MemberName, report: ExitReport },
}

/// One recorded turn.
#[derive(Debug)]
pub(super) struct ScriptedTurn {
    pub(super) start: u64,
    /// `None` if the record ends before the turn ends.
    pub(super) end: Option<u64>,
    /// When the daemon noticed that the turn had ended. Turns whose results the daemon read in one
    /// scan have the same `end`, and the replay ends them in the order of `end_reported`.
    pub(super) end_reported: u64,
    /// The task. `None` for a turn on messages.
    pub(super) task: Option<TaskId>,
    pub(super) reason: IdleReason,
    /// What the agent sent in the turn, with the time since its start.
    pub(super) sent: Vec<(u64, MemberName, Message)>,
}

impl ScriptedTurn {
    pub(super) fn new(start: u64, task: Option<TaskId>) -> ScriptedTurn {
        let reason = IdleReason::Available;
        ScriptedTurn { start, end: None, end_reported: 0, task, reason, sent: Vec::new() }
    }

    /// Ends the turn at the time when its result was written, but not later than `at`.
    fn end_at(&mut self, at: u64, written_results: &mut BTreeMap<TaskId, u64>) {
        let written_at = self.task.and_then(|task| written_results.remove(&task));
        self.end = Some(written_at.unwrap_or(at).min(at));
        self.end_reported = at;
    }
}

/// The activity and the turn number of a shim that has not reported yet.
pub(super) const BEFORE_FIRST_REPORT: (Activity, u64) = (Activity::Active, 0);

impl Script {
    /// The script of a team's record.
    pub(super) fn from_record(record: &ParsedRecord) -> Script {
        let mut reader = RecordReader::new(record);
        for (at, entry) in &record.entries {
            reader.script.end = reader.script.end.max(*at);
            reader.read_entry(*at, entry);
        }
        reader.add_unreported_turns();
        reader.attribute_messages_to_turns();
        reader.put_approvals_before_exits();
        reader.script
    }
}

fn is_claimed_by(task: &Task, member: &MemberName) -> bool {
    task.status == TaskStatus::InProgress && task.owner.as_ref() == Some(member)
}

/// Returns a task as it was before its claim: pending, and without an owner unless `teamctl run`
/// had assigned the task. Used if the recorded daemon read the task only after the claim.
fn before_claim(task: &Task) -> Task {
    let is_assigned = task.metadata.as_ref().is_some_and(|metadata| metadata.contains_key("run_owner"));
    let owner = task.owner.clone().filter(|_| is_assigned);
    Task { status: TaskStatus::Pending, owner, ..task.clone() }
}

/// Whether one of these members works on a task.
fn is_worked_on_by(task: &Task, members: &BTreeSet<MemberName>) -> bool {
    let is_in_progress = task.status == TaskStatus::InProgress && task.failure().is_none();
    is_in_progress && task.owner.as_ref().is_some_and(|owner| members.contains(owner))
}

fn is_approved_exit(kind: &EventKind) -> bool {
    matches!(kind, EventKind::MemberExited { description, .. } if description == "approved")
}

/// The message by which a member agrees to shut down. The replay fills in the request.
fn shutdown_approved_by(member: &MemberName) -> ShutdownApproved {
    ShutdownApproved {
        request_id: RequestId::parse("shutdown").expect("the id is valid"),
        from: member.to_string(),
        timestamp: String::new(),
        pane_id: None,
        backend_type: None,
    }
}

/// The state while a team's record is read.
struct RecordReader {
    script: Script,
    /// The members whose turns a shim runs.
    turn_members: BTreeSet<MemberName>,
    /// The tasks for which each member had a turn.
    task_turns: BTreeSet<(MemberName, TaskId)>,
    /// The requests that people answered. The daemon answers the others.
    answered_by_people: BTreeSet<RequestId>,
    /// The prompts of spawned members. The daemon stores each as the first message.
    prompts: BTreeMap<MemberName, String>,
    /// The activity and the turn number that each shim has reported last.
    reported: BTreeMap<MemberName, (Activity, u64)>,
    /// When members claimed the tasks for which no turn has been reported yet.
    claims: BTreeMap<(MemberName, TaskId), u64>,
    /// When the result of a task was written, if the turn has not been reported as ended yet. A
    /// shim writes the result some milliseconds before it reports the end of the turn.
    written_results: BTreeMap<TaskId, u64>,
    /// When the first turn on each task began.
    first_turns: BTreeMap<TaskId, u64>,
    /// The last state of each task.
    tasks: BTreeMap<TaskId, Task>,
    /// The messages of the members whose turns a shim runs.
    sent: Vec<(u64, MemberName, Message)>,
}

impl RecordReader {
    fn new(record: &ParsedRecord) -> RecordReader {
        let entries = || record.entries.iter().map(|(_, entry)| entry);
        let turn_member = |entry: &RecordEntry| match entry {
            RecordEntry::Report { member, report: FromShim::TurnStatus(_) } => Some(member.clone()),
            _ => None,
        };
        let task_turn = |entry: &RecordEntry| match entry {
            RecordEntry::Report { member, report: FromShim::TurnStatus(status) } => {
                Some((member.clone(), status.task()?))
            }
            _ => None,
        };
        let answered = |entry: &RecordEntry| match entry {
            RecordEntry::Event { event } => match &event.kind {
                EventKind::RequestAnswered { request_id, answered_by: AnsweredBy::Lead, .. } => {
                    RequestId::parse(request_id.as_ref()).ok()
                }
                _ => None,
            },
            _ => None,
        };
        RecordReader {
            script: Script {
                team: record.team.clone(),
                actions: VecDeque::new(),
                turns: BTreeMap::new(),
                replayed: ReplayedAgents::default(),
                events: Vec::new(),
                lines: record.entries.len(),
                end: 0,
            },
            turn_members: entries().filter_map(turn_member).collect(),
            task_turns: entries().filter_map(task_turn).collect(),
            answered_by_people: entries().filter_map(answered).collect(),
            prompts: BTreeMap::new(),
            reported: BTreeMap::new(),
            claims: BTreeMap::new(),
            written_results: BTreeMap::new(),
            first_turns: BTreeMap::new(),
            tasks: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    fn act(&mut self, at: u64, action: OutsideAction) {
        self.script.actions.push_back((at, action));
    }

    fn read_entry(&mut self, at: u64, entry: &RecordEntry) {
        match entry {
            RecordEntry::Start { .. } | RecordEntry::Output { .. } => {}
            RecordEntry::Call { caller, request } => self.read_call(at, caller.as_ref(), request),
            RecordEntry::Report { member, report } => self.read_report(at, member, report),
            RecordEntry::Message { inbox, message, .. } => self.read_message(at, inbox, message),
            RecordEntry::Task { task } => self.read_task(at, task),
            RecordEntry::TaskRemoved { id } => self.act(at, OutsideAction::RemoveTask(*id)),
            RecordEntry::Event { event } => self.script.events.push((at, (**event).clone())),
        }
    }

    /// Adds a recorded call to the script. Calls of shims for their next task are left out, because
    /// replayed shims make them too. Worktrees are left out: the replayed members work without
    /// them.
    fn read_call(&mut self, at: u64, caller: Option<&MemberName>, request: &Request) {
        let mut request = request.clone();
        match &mut request {
            Request::NextTask(_) | Request::CreateWorktree(_) => return,
            Request::Spawn(spawn) => {
                spawn.worktree = None;
                self.prompts.insert(spawn.name.clone(), spawn.prompt.clone());
            }
            _ => {}
        }
        self.act(at, OutsideAction::Call { caller: caller.cloned(), request: Box::new(request) });
    }

    fn read_report(&mut self, at: u64, member: &MemberName, report: &FromShim) {
        match report {
            FromShim::TurnStatus(status) => self.read_turn_status(at, member, status),
            FromShim::Exited(report) => {
                self.act(at, OutsideAction::Exit { member: member.clone(), report: report.clone() });
            }
            FromShim::Started { .. } | FromShim::Failed(_) | FromShim::Interrupted { .. } => {}
        }
    }

    fn read_turn_status(&mut self, at: u64, member: &MemberName, status: &TurnStatus) {
        let reported = (status.activity, status.turn_number);
        let statuses = self.script.replayed.statuses.entry(member.clone()).or_default();
        if self.reported.insert(member.clone(), reported).unwrap_or(BEFORE_FIRST_REPORT) == reported {
            // The same turn or idle time, with a new session, usage or pause.
            if let Some(last) = statuses.back_mut() {
                last.status = status.clone();
            }
            return;
        }
        let claimed_at = status.task().and_then(|task| self.claims.remove(&(member.clone(), task)));
        let scanned_at = claimed_at.unwrap_or(at);
        statuses.push_back(RecordedStatus { at: scanned_at, status: status.clone() });
        let turns = self.script.turns.entry(member.clone()).or_default();
        if let Some(running) = turns.last_mut().filter(|turn| turn.end.is_none()) {
            running.end_at(scanned_at, &mut self.written_results);
            running.reason = status.idle_reason.unwrap_or(running.reason);
        }
        if let Some(task) = status.task().filter(|_| status.activity == Activity::Active) {
            self.complete_blockers(scanned_at, task);
        }
        let turns = self.script.turns.entry(member.clone()).or_default();
        if status.activity == Activity::Active {
            turns.push(ScriptedTurn::new(scanned_at, status.task()));
        }
        if status.activity == Activity::Active && status.task().is_none() {
            self.script.replayed.message_turns.entry(member.clone()).or_default().push_back(at);
        }
    }

    /// Adds a recorded message to the script. Messages of the daemon or a shim are left out,
    /// because the replay writes them again.
    fn read_message(&mut self, at: u64, inbox: &MemberName, message: &Message) {
        let from = MemberName::new_unchecked(&message.from);
        if self.prompts.get(inbox).is_some_and(|prompt| from.is_lead() && *prompt == message.text) {
            self.prompts.remove(inbox);
            return;
        }
        let is_written_again = match Payload::parse(&message.text) {
            Some(Payload::IdleNotification(_)) => self.turn_members.contains(&from),
            Some(Payload::ShutdownRequest(_) | Payload::ModeSetRequest(_)) => from.is_lead(),
            Some(Payload::TeammateTerminated(_)) => true,
            Some(Payload::PermissionResponse(response)) => {
                from.is_lead() && !self.answered_by_people.contains(&response.request_id)
            }
            Some(Payload::PlanApprovalResponse(response)) => {
                from.is_lead() && !self.answered_by_people.contains(&response.request_id)
            }
            _ => false,
        };
        match is_written_again {
            true => {}
            false if self.turn_members.contains(&from) => {
                self.sent.push((at, inbox.clone(), message.clone()));
            }
            false => self.act(at, OutsideAction::Send { inbox: inbox.clone(), message: message.clone() }),
        }
    }

    /// Adds a change of a task to the script. Claims and results of a member whose turns a shim
    /// runs are left out: the replayed agent claims the task itself, and writes the recorded result
    /// at the end of its turn.
    fn read_task(&mut self, at: u64, task: &Task) {
        let previous = self.tasks.insert(task.id, task.clone());
        let is_in_turn = |task: &Task| is_worked_on_by(task, &self.turn_members);
        let is_same_turn = |previous: &Task| is_in_turn(previous) && previous.owner == task.owner;
        if is_in_turn(task) && previous.as_ref().is_some_and(is_same_turn) {
            return;
        }
        let (is_in_turn_now, was_in_turn) = (is_in_turn(task), previous.as_ref().is_some_and(is_in_turn));
        // The daemon may see a task only after a turn on it has begun or ended.
        let has_turn = task.owner.clone().is_some_and(|owner| self.task_turns.contains(&(owner, task.id)));
        let is_over = task.status == TaskStatus::Completed || task.failure().is_some();
        let was_startable = previous.as_ref().is_none_or(|task| task.status == TaskStatus::Pending);
        let was_in_turn = was_in_turn || has_turn && was_startable;
        if previous.is_none() && (is_in_turn_now || has_turn && is_over) {
            let seen_at = self.first_turns.get(&task.id).map_or(at, |first| at.min(*first));
            self.act(seen_at, OutsideAction::WriteTask(Box::new(before_claim(task))));
        }
        if is_in_turn_now {
            let owner = task.owner.clone().into_iter();
            self.claims.extend(owner.map(|owner| ((owner, task.id), at)));
        } else if was_in_turn && is_over {
            let result = TaskResult { status: task.status.clone(), metadata: task.metadata.clone() };
            self.written_results.entry(task.id).or_insert(at);
            self.script.replayed.results.entry(task.id).or_default().push_back(result);
        } else {
            self.act(at, OutsideAction::WriteTask(Box::new(task.clone())));
        }
    }

    /// Completes the tasks that block `task`. A turn on `task` has begun, so they are complete, but
    /// the record may say so only later.
    fn complete_blockers(&mut self, at: u64, task: TaskId) {
        self.first_turns.entry(task).or_insert(at);
        let blockers = self.tasks.get(&task).map(|task| task.blocked_by.clone()).unwrap_or_default();
        for blocker in blockers {
            if self.tasks.get(&blocker).is_some_and(|task| task.status != TaskStatus::Completed) {
                self.written_results.entry(blocker).or_insert(at);
            }
        }
    }

    /// Adds the starts and ends of turns that the shims had not reported yet when the record ended.
    /// A claimed task without a report started a turn, and a written result without a report ended
    /// one.
    fn add_unreported_turns(&mut self) {
        for ((member, task), at) in std::mem::take(&mut self.claims) {
            if self.tasks.get(&task).is_some_and(|task| is_claimed_by(task, &member)) {
                self.add_unreported_turn(member, task, at);
            }
        }
        for running in self.script.turns.values_mut().filter_map(|turns| turns.last_mut()) {
            let is_written = |task: TaskId| self.written_results.contains_key(&task);
            if running.end.is_none() && running.task.is_some_and(is_written) {
                running.end_at(u64::MAX, &mut self.written_results);
            }
        }
    }

    fn add_unreported_turn(&mut self, member: MemberName, task: TaskId, at: u64) {
        let statuses = self.script.replayed.statuses.entry(member.clone()).or_default();
        let Some(last) = statuses.back().filter(|last| last.at <= at) else { return };
        let status = TurnStatus { activity: Activity::Active, ..last.status.clone() };
        statuses.push_back(RecordedStatus { at, status });
        let turns = self.script.turns.entry(member).or_default();
        if let Some(running) = turns.last_mut().filter(|turn| turn.end.is_none()) {
            running.end_at(at, &mut self.written_results);
        }
        turns.push(ScriptedTurn::new(at, Some(task)));
    }

    /// Adds the messages that members sent during a turn to their turns. A message that was sent
    /// outside of a turn becomes an [`OutsideAction`].
    fn attribute_messages_to_turns(&mut self) {
        for (at, inbox, message) in std::mem::take(&mut self.sent) {
            let from = MemberName::new_unchecked(&message.from);
            let mut turns = self.script.turns.get_mut(&from).into_iter().flatten();
            let is_in_turn =
                |turn: &&mut ScriptedTurn| turn.start <= at && turn.end.is_none_or(|end| at <= end);
            match turns.rfind(is_in_turn) {
                Some(turn) => turn.sent.push((at - turn.start, inbox, message)),
                None => self.act(at, OutsideAction::Send { inbox, message }),
            }
        }
        self.script.actions.make_contiguous().sort_by_key(|(at, _)| *at);
    }

    /// A record may end before the daemon has seen an agent's message that it agrees to shut down,
    /// although it has the agent's exit. Adds these messages.
    fn add_unseen_approvals(&mut self) {
        let is_approval = |message: &Message, from: &MemberName| {
            message.from == from.as_str()
                && matches!(Payload::parse(&message.text), Some(Payload::ShutdownApproved(_)))
        };
        let is_seen = |member: &MemberName| {
            let mut actions = self.script.actions.iter();
            actions.any(|(_, action)| {
                matches!(action, OutsideAction::Send { message, .. } if is_approval(message, member))
            })
        };
        let approved = self.script.events.iter().filter(|(_, event)| is_approved_exit(&event.kind));
        let approved = approved.filter_map(|(at, event)| Some((*at, event.member.clone()?)));
        let unseen: Vec<_> = approved.filter(|(_, member)| !is_seen(member)).collect();
        for (at, member) in unseen {
            let payload = Payload::ShutdownApproved(shutdown_approved_by(&member));
            let message = Message::new(&member, payload.to_text(), 0);
            self.act(at, OutsideAction::Send { inbox: MemberName::lead(), message });
        }
    }

    /// An agent sends a message that it agrees to shut down, and then exits. The record may have
    /// the two in the wrong order, because the daemon sees the exit at once and the message some
    /// milliseconds later. Moves such messages before the exit.
    fn put_approvals_before_exits(&mut self) {
        self.add_unseen_approvals();
        let actions = self.script.actions.make_contiguous();
        let exits: Vec<(u64, MemberName)> = actions
            .iter()
            .filter_map(|(at, action)| match action {
                OutsideAction::Exit { member, .. } => Some((*at, member.clone())),
                _ => None,
            })
            .collect();
        for (at, action) in actions.iter_mut() {
            let OutsideAction::Send { message, .. } = action else { continue };
            if !matches!(Payload::parse(&message.text), Some(Payload::ShutdownApproved(_))) {
                continue;
            }
            let is_late =
                |(exit, member): &&(u64, MemberName)| *exit <= *at && member.as_str() == message.from;
            if let Some((exit, _)) = exits.iter().rfind(is_late) {
                *at = exit.saturating_sub(1);
            }
        }
        actions.sort_by_key(|(at, _)| *at);
    }
}
