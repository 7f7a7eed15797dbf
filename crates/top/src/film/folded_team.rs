//! The state of a recorded team at one time of the film. The state is computed from all lines of
//! the record up to this time. The functions that draw a live team draw this state too.

use super::folded_members::FoldedMembers;
use crate::clock_time::ScreenClock;
use crate::member_and_request_items::{member_item, past_member_item, request_item};
use crate::recent_events::{MAX_EVENTS, event_item};
use crate::recent_messages::MessageStream;
use crate::snapshot_reader::last_line_of;
use crate::task_items_by_dependency::task_items;
use crate::team_snapshot_for_screen::{DaemonReachability, MemberItem, ScreenSnapshot, TeamPresence};
use crate::ui_events_and_effects::MemberOutput;
use client::member_request_view::MemberRequestView;
use client::member_view::MemberView;
use client::suggested_commands::SuggestedCommands;
use client::task_counts_and_failures::abandoned_tasks;
use client::terminal_output_to_plain_lines::printable_lines;
use protocol::control_socket::{FromShim, MemberFlag};
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_file::{InboxEntry, Message};
use protocol::member_request::MemberRequestKind;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use protocol::team_record_line::RecordEntry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use store::OpenRequest;

/// How much of a member's output is kept, in bytes.
const MAX_OUTPUT_BYTES: usize = 8 << 10;

/// A recorded team at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct FoldedTeam {
    team: TeamPresence,
    members: FoldedMembers,
    /// How many messages in each inbox are unread.
    unread: BTreeMap<MemberName, usize>,
    tasks: BTreeMap<TaskId, Arc<Task>>,
    messages: MessageStream,
    /// The open requests, oldest first.
    requests: Vec<OpenRequest>,
    /// The last events.
    events: VecDeque<Event>,
    /// The end of the output that each member's last spawn has written.
    output: BTreeMap<MemberName, String>,
}

impl FoldedTeam {
    /// Applies a line of the record. `at` is its time in milliseconds since the epoch.
    pub(super) fn apply(&mut self, at: u64, entry: &RecordEntry) {
        match entry {
            RecordEntry::Report { member, report: FromShim::TurnStatus(turn) } => {
                self.members.apply_turn(member, turn);
            }
            RecordEntry::Message { inbox, index, message } => self.add_message(at, inbox, *index, message),
            RecordEntry::Task { task } => drop(self.tasks.insert(task.id, Arc::new((**task).clone()))),
            RecordEntry::TaskRemoved { id } => drop(self.tasks.remove(id)),
            RecordEntry::Output { member, text, .. } => self.add_output(member, text),
            RecordEntry::Event { event } => self.apply_event(at, event),
            // Events and messages say what followed from these lines.
            RecordEntry::Start { .. } | RecordEntry::Call { .. } | RecordEntry::Report { .. } => {}
        }
    }

    fn add_message(&mut self, at: u64, inbox: &MemberName, index: usize, message: &Message) {
        *self.unread.entry(inbox.clone()).or_default() += usize::from(!message.read);
        if let Some(color) = &message.color {
            self.members.set_color(&MemberName::new_unchecked(&message.from), color);
        }
        let entry = InboxEntry { index, raw: String::new(), message: Ok(message.clone()) };
        self.messages.add_entry(inbox, &entry, at);
        if let Some(request) = Some(entry).filter(|_| inbox.is_lead()).and_then(OpenRequest::from_entry) {
            self.add_request(request);
        }
    }

    /// Adds a request. Some programs ask twice.
    fn add_request(&mut self, request: OpenRequest) {
        let is_same =
            |open: &OpenRequest| open.from == request.from && open.request.id() == request.request.id();
        if !self.requests.iter().any(is_same) {
            self.requests.push(request);
        }
    }

    fn add_output(&mut self, member: &MemberName, text: &str) {
        let output = self.output.entry(member.clone()).or_default();
        output.push_str(text);
        let surplus = output.len().saturating_sub(MAX_OUTPUT_BYTES);
        let start = (surplus..=output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(0);
        output.drain(..start);
    }

    fn apply_event(&mut self, at: u64, event: &Event) {
        match (&event.kind, &event.member) {
            (EventKind::TeamCreated, _) => self.team = TeamPresence::Exists,
            (EventKind::TeamDeleted, _) => self.team = TeamPresence::Deleted,
            (EventKind::MessageRead { unread }, Some(inbox)) if event.on_host.is_none() => {
                self.unread.insert(inbox.clone(), *unread);
            }
            (
                EventKind::RequestAnswered { request_id, .. } | EventKind::RequestWithdrawn { request_id },
                Some(from),
            ) => self.requests.retain(|open| open.from != *from || open.request.id().as_str() != request_id),
            (EventKind::MemberExited { .. }, Some(from)) => self.requests.retain(|open| open.from != *from),
            (EventKind::MemberSpawned { .. }, Some(member)) => drop(self.output.remove(member)),
            _ => {}
        }
        self.members.apply_event(at, event);
        self.events.push_back(event.clone());
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }

    /// What the screen shows at the time of `clock`.
    pub(super) fn snapshot(&mut self, clock: &ScreenClock) -> ScreenSnapshot {
        let tasks: Vec<Arc<Task>> = self.tasks.values().cloned().collect();
        let abandoned = abandoned_tasks(&tasks, &self.members.possible_workers());
        let abandoned: Vec<TaskId> = abandoned.iter().map(|task| task.id).collect();
        ScreenSnapshot {
            daemon: DaemonReachability::Running,
            team: self.team,
            tmux_socket: None,
            budget: String::new(),
            members: self.member_items(&tasks, clock),
            tasks: Arc::new(task_items(&tasks, &abandoned)),
            messages: self.messages.messages(clock),
            events: self.events.iter().map(|event| event_item(event, clock)).collect(),
            requests: Some(self.requests.iter().map(|open| request_item(&to_view(open), clock)).collect()),
        }
    }

    /// The end of the member's output.
    pub(super) fn output(&self, name: &MemberName) -> MemberOutput {
        MemberOutput::end_of_log(self.output.get(name).map_or("", String::as_str))
    }

    /// The list items of the running members, the lead and the past members, in this order.
    fn member_items(&self, tasks: &[Arc<Task>], clock: &ScreenClock) -> Vec<MemberItem> {
        let lead = MemberView { lifecycle: "lead".to_owned(), ..MemberView::default() };
        let lead = MemberView { name: MemberName::lead().to_string(), ..lead };
        let current = self.members.running.iter().chain([&lead]);
        let past = self.members.past.iter();
        let past = past.map(|past| past_member_item(past, &SuggestedCommands::default(), clock));
        current.map(|member| self.member_item(member, tasks, clock)).chain(past).collect()
    }

    fn member_item(&self, member: &MemberView, tasks: &[Arc<Task>], clock: &ScreenClock) -> MemberItem {
        let name = MemberName::new_unchecked(&member.name);
        let output = self.output.get(&name).map_or("", String::as_str);
        let is_worked_on = |task: &&Arc<Task>| {
            task.status == TaskStatus::InProgress
                && task.failure().is_none()
                && task.owner.as_ref() == Some(&name)
        };
        let requests = self.requests.iter().filter(|open| open.from == name);
        let flags = requests.map(|open| match open.request.kind() {
            MemberRequestKind::Plan => MemberFlag::AwaitingPlanApproval,
            MemberRequestKind::Permission => MemberFlag::AwaitingPermission,
        });
        let view = MemberView {
            task: tasks.iter().find(is_worked_on).map(|task| task.title().to_owned()),
            unread: Some(self.unread.get(&name).copied().unwrap_or(0)),
            flags: flags.chain(member.flags.iter().copied()).collect(),
            ..member.clone()
        };
        member_item(&view, last_line_of(printable_lines(output.as_bytes())), clock)
    }
}

/// The view of a request. The record does not say what the team's policy would have answered later.
fn to_view(open: &OpenRequest) -> MemberRequestView {
    MemberRequestView { request: open.clone(), policy_answer: None }
}
