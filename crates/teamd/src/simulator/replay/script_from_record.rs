//! Turns a record into a script: what people and agents did and when, and the recorded event log to
//! compare with.

use crate::simulator::replay::replayed_agents::{RecordedStatus, ReplayedAgents, TaskResult};
use protocol::control_socket::{Activity, ExitReport, FromShim, Request, TurnStatus};
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{IdleReason, Payload};
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::policy::AnsweredBy;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_record_line::{RECORD_VERSION, RecordEntry, RecordLine};
use protocol::timestamp::parse_iso8601;
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
    pub(super) events: Vec<Event>,
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
    /// The task. `None` for a turn on messages.
    pub(super) task: Option<TaskId>,
    pub(super) reason: IdleReason,
    /// When the result of the task was written, since the start of the turn. `None` if the daemon
    /// saw it after the turn, or if there is none.
    pub(super) result: Option<u64>,
    /// What the agent sent in the turn, with the time since its start.
    pub(super) sent: Vec<(u64, MemberName, Message)>,
}

impl ScriptedTurn {
    pub(super) fn new(start: u64, task: Option<TaskId>) -> ScriptedTurn {
        ScriptedTurn { start, end: None, task, reason: IdleReason::Available, result: None, sent: Vec::new() }
    }
}

/// A task that the daemon has seen only after its claim, as it was before. `teamctl run` assigns a
/// task to its owner when it creates the task.
fn before_claim(task: &Task) -> Task {
    let is_assigned = task.metadata.as_ref().is_some_and(|metadata| metadata.contains_key("run_owner"));
    let owner = task.owner.clone().filter(|_| is_assigned);
    Task { status: TaskStatus::Pending, owner, ..task.clone() }
}

/// The activity and the turn number of a shim that has not reported yet.
pub(super) const BEFORE_FIRST_REPORT: (Activity, u64) = (Activity::Active, 0);

/// Parses a record.
///
/// # Errors
///
/// The number of the line that is no line of a record of this version, and why.
pub(super) fn parse_record(text: &str) -> Result<Vec<RecordLine>, String> {
    let lines: Vec<RecordLine> = text
        .lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1))
        })
        .collect::<Result<_, _>>()?;
    match lines.first().map(|line| &line.entry) {
        Some(RecordEntry::Start { version: RECORD_VERSION, .. }) => Ok(lines),
        _ => Err(format!("the first line is no start of a record of version {RECORD_VERSION}")),
    }
}

impl Script {
    /// The script of a record that [`parse_record`] has accepted.
    pub(super) fn from_lines(lines: &[RecordLine]) -> Script {
        let Some(RecordEntry::Start { team, .. }) = lines.first().map(|line| &line.entry) else {
            panic!("a record begins with its start");
        };
        let mut reader = RecordReader::new(team.clone(), lines);
        let first = time_of(&lines[0]);
        for line in lines {
            let at = time_of(line).saturating_sub(first);
            reader.script.end = at.max(reader.script.end);
            reader.read_entry(at, &line.entry);
        }
        reader.attribute_messages_to_turns();
        reader.put_approvals_before_exits();
        reader.script
    }
}

fn time_of(line: &RecordLine) -> u64 {
    parse_iso8601(&line.time).unwrap_or_else(|| panic!("{} is a time", line.time))
}

/// The state while a record is read.
struct RecordReader {
    script: Script,
    /// The members whose turns a shim runs.
    turn_members: BTreeSet<MemberName>,
    /// The requests that people answered. The daemon answers the others.
    answered_by_people: BTreeSet<RequestId>,
    /// The prompts of spawned members. The daemon stores each as the first message.
    prompts: BTreeMap<MemberName, String>,
    /// The activity and the turn number that each shim has reported last.
    reported: BTreeMap<MemberName, (Activity, u64)>,
    /// When members claimed the tasks for which no turn has been reported yet.
    claims: BTreeMap<(MemberName, TaskId), u64>,
    /// The last state of each task.
    tasks: BTreeMap<TaskId, Task>,
    /// The messages that members with turns sent.
    sent: Vec<(u64, MemberName, Message)>,
}

impl RecordReader {
    fn new(team: TeamName, lines: &[RecordLine]) -> RecordReader {
        let entries = || lines.iter().map(|line| &line.entry);
        let turn_member = |entry: &RecordEntry| match entry {
            RecordEntry::Report { member, report: FromShim::TurnStatus(_) } => Some(member.clone()),
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
                team,
                actions: VecDeque::new(),
                turns: BTreeMap::new(),
                replayed: ReplayedAgents::default(),
                events: Vec::new(),
                end: 0,
            },
            turn_members: entries().filter_map(turn_member).collect(),
            answered_by_people: entries().filter_map(answered).collect(),
            prompts: BTreeMap::new(),
            reported: BTreeMap::new(),
            claims: BTreeMap::new(),
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
            RecordEntry::Event { event } => self.script.events.push((**event).clone()),
        }
    }

    /// A shim asks for its next task by itself, in the replay too. A worktree is not replayed: its
    /// member works without one.
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
                let turns = self.script.turns.get_mut(member).into_iter().flatten();
                turns.filter(|turn| turn.end.is_none()).for_each(|turn| turn.end = Some(at));
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
        let start = claimed_at.unwrap_or(at);
        statuses.push_back(RecordedStatus { at: start, status: status.clone() });
        let turns = self.script.turns.entry(member.clone()).or_default();
        if let Some(running) = turns.last_mut().filter(|turn| turn.end.is_none()) {
            running.end = Some(at);
            running.reason = status.idle_reason.unwrap_or(running.reason);
        }
        if status.activity == Activity::Active {
            turns.push(ScriptedTurn::new(start, status.task()));
        }
        if status.activity == Activity::Active && status.task().is_none() {
            self.script.replayed.message_turns.entry(member.clone()).or_default().push_back(at);
        }
    }

    /// Messages that the daemon or a shim writes are left out, because the replay writes them
    /// again.
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

    /// Reads a change of a task. If a shim runs the owner's turns, two changes are no actions: the
    /// claim, which the replayed agent makes by itself, and the result, which the replayed agent
    /// writes at the end of its turn.
    fn read_task(&mut self, at: u64, task: &Task) {
        let previous = self.tasks.insert(task.id, task.clone());
        let is_in_turn = |task: &Task| {
            task.status == TaskStatus::InProgress
                && task.failure().is_none()
                && task.owner.as_ref().is_some_and(|owner| self.turn_members.contains(owner))
        };
        if is_in_turn(task) {
            if previous.is_none() {
                self.act(at, OutsideAction::WriteTask(Box::new(before_claim(task))));
            }
            let owner = task.owner.clone().into_iter();
            self.claims.extend(owner.map(|owner| ((owner, task.id), at)));
            return;
        }
        let is_result = previous.as_ref().is_some_and(is_in_turn)
            && (task.status == TaskStatus::Completed || task.failure().is_some());
        match is_result {
            true => {
                self.note_time_of_result(at, task);
                let result = TaskResult { status: task.status.clone(), metadata: task.metadata.clone() };
                self.script.replayed.results.entry(task.id).or_default().push_back(result);
            }
            false => self.act(at, OutsideAction::WriteTask(Box::new(task.clone()))),
        }
    }

    /// Stores in the owner's turn when the task got its result.
    fn note_time_of_result(&mut self, at: u64, task: &Task) {
        let turns = task.owner.as_ref().and_then(|owner| self.script.turns.get_mut(owner));
        let turn = turns.into_iter().flatten().rfind(|turn| turn.task == Some(task.id));
        if let Some(turn) = turn.filter(|turn| turn.end.is_none_or(|end| at <= end)) {
            turn.result = Some(at.saturating_sub(turn.start));
        }
    }

    /// A message of a member with turns belongs to the turn in which it was sent. Without such a
    /// turn it is an action of its own.
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

    /// The daemon sees the exit of an agent at once, and the message by which the agent agreed to
    /// shut down some milliseconds later. The replay has them in the order in which they happened.
    fn put_approvals_before_exits(&mut self) {
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
