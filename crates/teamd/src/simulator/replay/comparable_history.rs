//! Reduces the event log of a team to what a replay must repeat: which member claimed which task,
//! in which order, and the history of each task and of each member.
//!
//! Events of different tasks and members may come in another order than in the record, because
//! agents run side by side. Times, pids and ids that the daemon draws differ in any case.

use protocol::event_log_line::{Event, EventKind};
use std::collections::BTreeMap;
use std::fmt::Write;

const IDLE: &str = "idle";

/// The history of a team as text, one section for each subject.
pub(super) fn comparable_history(events: &[Event]) -> String {
    let mut sections: BTreeMap<(u8, String), Vec<String>> = BTreeMap::new();
    for event in events {
        if let EventKind::TaskStarted { task, owner, .. } = &event.kind {
            let owner = owner.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
            let claims = sections.entry((0, "claims".to_owned())).or_default();
            claims.push(format!("task {task} by {owner}"));
        }
        if let (Some(section), Some(line)) = (section_of(event), sentence(event)) {
            let lines = sections.entry(section).or_default();
            // An agent that ends soon after its turn may end before its shim reports that it is
            // idle.
            if matches!(event.kind, EventKind::MemberExited { .. })
                && lines.last().is_some_and(|last| last == IDLE)
            {
                lines.pop();
            }
            lines.push(line);
        }
    }
    let mut text = String::new();
    for ((_, title), lines) in sections {
        writeln!(text, "{title}").expect("a text can be written to");
        lines.iter().for_each(|line| writeln!(text, "  {line}").expect("a text can be written to"));
    }
    text
}

/// The section of an event: its task, its member, an inbox, or the team. Turns and messages of a
/// member have two sections, because the daemon learns of them by a socket and by file events.
fn section_of(event: &Event) -> Option<(u8, String)> {
    let json = serde_json::to_value(event).expect("an event is serializable");
    match (json["task"].as_str(), &event.member) {
        (Some(task), _) => Some((1, format!("task {task}"))),
        (None, Some(member)) if is_message(&event.kind) => Some((3, format!("inbox of {member}"))),
        (None, Some(member)) => Some((2, format!("member {member}"))),
        (None, None) => Some((4, "team".to_owned())),
    }
}

/// Payloads that shims write at the end of a turn or of an agent, and the requests that they
/// answer.
const SHIM_PAYLOADS: [&str; 4] =
    ["idle_notification", "shutdown_request", "shutdown_approved", "shutdown_rejected"];

/// Whether the daemon learns of the event by a message, or sends one.
fn is_message(kind: &EventKind) -> bool {
    matches!(kind, EventKind::MessageStored { .. } | EventKind::ShutdownRequested { .. })
}

/// The event without times, pids and ids that the daemon draws. `None` for an event that depends on
/// when a scan ran: how many messages are unread, and changes of a task's text.
fn sentence(event: &Event) -> Option<String> {
    Some(match &event.kind {
        EventKind::MessageRead { .. } | EventKind::TaskUpdated { .. } | EventKind::MemberNoOutput { .. } => {
            return None;
        }
        // Shims write these messages. The simulated disk keeps shutdown requests apart from
        // inboxes.
        EventKind::MessageStored { kind, .. } if SHIM_PAYLOADS.contains(&kind.as_str()) => return None,
        EventKind::MemberSpawned { .. } => "spawned".to_owned(),
        EventKind::MemberAdopted { .. } => "adopted".to_owned(),
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
        kind => kind.to_string(),
    })
}
