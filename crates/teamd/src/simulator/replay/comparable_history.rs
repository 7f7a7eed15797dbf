//! Reduces the event log of a team to what a replay must repeat: the order in which tasks were
//! claimed and by which member, and the history of each task and each member.
//!
//! Events of different tasks and members may come in another order than in the record, because
//! agents run side by side. Times, pids and ids that the daemon generates always differ.

use protocol::event_log_line::{Event, EventKind};
use std::collections::BTreeMap;
use std::fmt::Write;

const IDLE: &str = "idle";
/// How the line of an exit begins.
const ENDED: &str = "ended";

/// An event with its time, in milliseconds since the start of the record.
pub(super) type TimedEvent = (u64, Event);

/// The history of a team: the lines of each section, with their times.
pub(super) struct ComparableHistory(BTreeMap<(u8, String), Vec<(u64, String)>>);

impl ComparableHistory {
    pub(super) fn from_events(events: &[TimedEvent]) -> ComparableHistory {
        let mut history = ComparableHistory(BTreeMap::new());
        // A replay has no other hosts.
        for (at, event) in events.iter().filter(|(_, event)| event.on_host.is_none()) {
            if let EventKind::TaskStarted { task, owner, .. } = &event.kind {
                let owner = owner.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
                history.add((0, "claims".to_owned()), *at, format!("task {task} by {owner}"));
            }
            let (Some(section), Some(line)) = (section_of(event), sentence(event)) else { continue };
            history.add(section, *at, line);
        }
        history
    }

    fn add(&mut self, section: (u8, String), at: u64, line: String) {
        self.0.entry(section).or_default().push((at, line));
    }

    /// Shortens each section that has more lines than the same section of `other`. Removes surplus
    /// lines from its end, but no lines from before the time `from`. If a record ends while the
    /// team works, its replay may have events that the record lacks.
    pub(super) fn remove_open_end(&mut self, from: u64, other: &ComparableHistory) {
        for (section, lines) in &mut self.0 {
            let other_length = other.0.get(section).map_or(0, Vec::len);
            while lines.len() > other_length && lines.last().is_some_and(|(at, _)| *at >= from) {
                lines.pop();
            }
        }
        self.0.retain(|_, lines| !lines.is_empty());
    }

    /// The history as text. An agent that ends soon after its turn may end before or after its shim
    /// has reported it as idle. So such a report just before an exit is left out.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for ((_, title), lines) in &self.0 {
            writeln!(text, "{title}").expect("a text can be written to");
            for (index, (_, line)) in lines.iter().enumerate() {
                let ends_next = lines.get(index + 1).is_some_and(|(_, next)| next.starts_with(ENDED));
                if line != IDLE || !ends_next {
                    writeln!(text, "  {line}").expect("a text can be written to");
                }
            }
        }
        text
    }
}

/// The section of an event: its task, its member, an inbox, or the team. Messages to a member have
/// another section than the member's turns, because their order is not fixed: the daemon learns of
/// turns from a socket, and of messages from file events.
fn section_of(event: &Event) -> Option<(u8, String)> {
    let json = serde_json::to_value(event).expect("an event is serializable");
    match (json["task"].as_str(), &event.member) {
        (Some(task), _) => Some((1, format!("task {task}"))),
        (None, Some(member)) if is_message(&event.kind) => Some((3, format!("inbox of {member}"))),
        (None, Some(member)) => Some((2, format!("member {member}"))),
        (None, None) => Some((4, "team".to_owned())),
    }
}

/// Kinds of messages that are left out of the history: reports of shims that a turn has ended,
/// shutdown requests, and the answers to shutdown requests.
const SHIM_PAYLOADS: [&str; 4] =
    ["idle_notification", "shutdown_request", "shutdown_approved", "shutdown_rejected"];

/// Whether the daemon learns of the event by a message, or sends one.
fn is_message(kind: &EventKind) -> bool {
    matches!(kind, EventKind::MessageStored { .. } | EventKind::ShutdownRequested { .. })
}

/// The event without times, pids, and ids that the daemon generates. `None` for an event that a
/// replay does not repeat, such as one that depends on when a scan ran.
fn sentence(event: &Event) -> Option<String> {
    Some(match &event.kind {
        EventKind::MessageRead { .. } | EventKind::TaskUpdated { .. } | EventKind::MemberNoOutput { .. } => {
            return None;
        }
        // A record says nothing about screens, foreign programs, the disk and the daemon itself.
        EventKind::MemberAtDialog { .. }
        | EventKind::MemberLimited { .. }
        | EventKind::MessageRestored { .. }
        | EventKind::LeadSessionEnded
        | EventKind::MemberAdopted { .. }
        | EventKind::TeamReplaced { .. }
        | EventKind::Error { .. } => return None,
        // A record ends when its team is deleted, which may be before or after this event.
        EventKind::TeamDeleted => return None,
        // The simulated inboxes lack these messages. Shims write them, or they are shutdown
        // requests, which the simulated disk stores elsewhere.
        EventKind::MessageStored { kind, .. } if SHIM_PAYLOADS.contains(&kind.as_str()) => return None,
        EventKind::MemberSpawned { .. } => "spawned".to_owned(),
        EventKind::MemberActive { summary } => {
            format!("active: {}", summary.split(':').next().unwrap_or_default())
        }
        EventKind::MemberIdle { .. } => IDLE.to_owned(),
        EventKind::MessageStored { from, kind, .. } => format!("{kind} from {from}"),
        EventKind::ShutdownRequested { .. } => "asked to shut down".to_owned(),
        EventKind::RequestOpened { kind, .. } => format!("asks: {kind:?}"),
        EventKind::RequestAnswered { approved, answered_by, .. } => {
            format!("{} by {}", if *approved { "approved" } else { "denied" }, answered_by.as_str())
        }
        EventKind::RequestWithdrawn { .. } => "takes its request back".to_owned(),
        EventKind::MemberExited { outcome, description } => format!("{ENDED}, {outcome}: {description}"),
        kind => kind.to_string(),
    })
}
