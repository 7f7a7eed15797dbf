//! The places in a film that a person may want to jump to.

use client::read_team_record::TimedRecordEntry;
use protocol::event_log_line::EventKind;
use protocol::inbox_message_payload::{IdleReason, Payload};
use protocol::team_record_line::RecordEntry;

/// A place in a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilmMark {
    /// Milliseconds after the start of the record.
    pub(crate) offset: u64,
    pub(crate) kind: MarkKind,
}

/// What happens at a place in a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// A member or a person sends a text.
    Message,
    /// A spawn, a turn or a task fails.
    Failure,
    /// A member asks for a permission or about a plan.
    Request,
}

/// In which direction a person jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JumpDirection {
    Next,
    Previous,
}

/// The marks of a team's record, in the order of time.
pub(super) fn find_marks(lines: &[TimedRecordEntry]) -> Vec<FilmMark> {
    let mark =
        |line: &TimedRecordEntry| Some(FilmMark { offset: line.offset, kind: mark_kind(&line.entry)? });
    lines.iter().filter_map(mark).collect()
}

/// The place of the next or previous mark of this kind. `None` if there is none.
pub(super) fn find_jump_target(
    marks: &[FilmMark],
    position: u64,
    kind: MarkKind,
    direction: JumpDirection,
) -> Option<u64> {
    let mut offsets = marks.iter().filter(|mark| mark.kind == kind).map(|mark| mark.offset);
    match direction {
        JumpDirection::Next => offsets.find(|offset| *offset > position),
        JumpDirection::Previous => offsets.take_while(|offset| *offset < position).last(),
    }
}

fn mark_kind(entry: &RecordEntry) -> Option<MarkKind> {
    match entry {
        RecordEntry::Message { message, .. } if Payload::detect_type(&message.text).is_none() => {
            Some(MarkKind::Message)
        }
        RecordEntry::Event { event } => match &event.kind {
            EventKind::RequestOpened { .. } => Some(MarkKind::Request),
            kind => is_failure(kind).then_some(MarkKind::Failure),
        },
        _ => None,
    }
}

fn is_failure(kind: &EventKind) -> bool {
    match kind {
        EventKind::MemberExited { outcome, .. } => outcome == "failed",
        EventKind::MemberIdle { reason } => *reason == Some(IdleReason::Failed),
        EventKind::MemberSpawnFailed { .. }
        | EventKind::MemberTurnsFailed { .. }
        | EventKind::MemberRespawnsExhausted { .. }
        | EventKind::BudgetExhausted { .. }
        | EventKind::TaskFailed { .. }
        | EventKind::TaskAbandoned { .. }
        | EventKind::Error { .. } => true,
        _ => false,
    }
}
