//! A notice: what people are told about a member or a team.

use protocol::event_log_line::EventKind;
use protocol::member_request::MemberRequestKind;
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use tmux::PaneId;

/// A notice for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) team: TeamName,
    /// `None`: the notice is about the whole team.
    pub(crate) member: Option<MemberName>,
    pub(crate) kind: NoticeKind,
    /// The pane in which people can see the cause of the notice. The text is not shown to a tmux
    /// client that displays this pane. The roster does not save the pane, because another pane may
    /// have the same number later.
    #[serde(skip)]
    pub(super) pane: Option<PaneId>,
}

/// The reason of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoticeKind {
    /// A member waits for an answer to its request.
    RequestWaiting(MemberRequestKind),
    /// The program of a member waits at a dialog.
    AtDialog,
    /// A member has exited, and is neither respawned nor suspended.
    Exited,
    /// A member was suspended, and nobody had asked for that.
    Suspended,
    /// The turn of a member has had no output for this long, in milliseconds.
    NoOutput(u64),
    /// Several turns of a member in a row have failed. `reason` says why the last one failed.
    TurnsFailed { count: u32, reason: String },
    /// The program of a member has reached its usage limit, which ends at this time of the machine.
    Limited { local_time: String },
    /// A member has had this many turns on messages of the member `with`, and further ones wait.
    ExchangePaused { with: MemberName, turns: u32 },
    /// All tasks of the team are completed. Contains the number of tasks.
    AllTasksDone(usize),
    /// The budget of the team, or the member's share of it, is used up.
    BudgetExhausted,
    /// The session that led the team has ended.
    LeadSessionEnded,
    /// Another host has replaced this one as the home of the team.
    HomeReplaced,
    /// Two hosts are homes of the team.
    TwoHomes,
}

impl NoticeKind {
    /// The notice that belongs to an event. `None` if there is none for this kind of event.
    pub(crate) fn of_event(event: &EventKind) -> Option<NoticeKind> {
        match event {
            EventKind::MemberAtDialog { .. } => Some(NoticeKind::AtDialog),
            EventKind::MemberSpawnFailed { .. }
            | EventKind::MemberExited { .. }
            | EventKind::MemberRespawnsExhausted { .. } => Some(NoticeKind::Exited),
            EventKind::MemberSuspended => Some(NoticeKind::Suspended),
            EventKind::MemberNoOutput { no_output_ms } => Some(NoticeKind::NoOutput(*no_output_ms)),
            EventKind::MemberTurnsFailed { failed_turns, reason, .. } => {
                Some(NoticeKind::TurnsFailed { count: *failed_turns, reason: reason.clone() })
            }
            EventKind::MemberLimited { local_time, .. } => {
                Some(NoticeKind::Limited { local_time: local_time.clone() })
            }
            EventKind::MemberExchangePaused { with, turns, .. } => {
                Some(NoticeKind::ExchangePaused { with: with.clone(), turns: *turns })
            }
            EventKind::BudgetExhausted { .. } => Some(NoticeKind::BudgetExhausted),
            _ => None,
        }
    }
}
