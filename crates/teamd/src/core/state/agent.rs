//! The state of a supervised agent.

use crate::core::roster::agent_record::SharedRecord;
use crate::core::state::long_poll::LongPollState;
use protocol::control_socket::{Activity, NoContactPause, TurnPause, TurnStatus, UsageLimit};
use protocol::member_request::MemberRequestKind;
use protocol::member_task_and_request_ids::TaskId;
use std::collections::BTreeSet;

/// A dialog on the screen of an agent's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScreenDialog {
    /// The question, or the first line of the dialog if no question is found.
    pub(crate) text: String,
    /// The usage limit that the dialog is about. `None` if it is about something else.
    pub(crate) limit: Option<UsageLimit>,
}

/// One supervised agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) record: SharedRecord,
    pub(crate) activity: Activity,
    /// When the activity changed last, in milliseconds since the epoch.
    pub(crate) activity_since: u64,
    /// The subject of the task that the agent has in progress.
    pub(crate) task_subject: Option<String>,
    /// The turn that was reported last, by the shim if it runs the agent's turns, or else by a
    /// hook. `None` until the first such report.
    pub(crate) turn: Option<TurnStatus>,
    /// Set if the agent begins no new turn because its team's home cannot be reached. The value
    /// says since when, in milliseconds since the epoch.
    pub(crate) no_contact_since: Option<u64>,
    /// Whether any report about the agent's activity has come from the agent itself or its hooks.
    pub(crate) has_reported_activity: bool,
    /// Whether the program has reported usage that is not counted, because it is too large to be
    /// true or is of another session. The first such report of each spawn is logged.
    pub(crate) has_reported_wrong_usage: bool,
    /// The start of the present turn, in milliseconds since the epoch, if people were notified that
    /// the turn has no output. `None` otherwise, and again once the program writes something.
    pub(crate) quiet_turn: Option<u64>,
    /// The dialog that the screen showed at the last capture. `None` if it showed none, or if the
    /// agent's activity has changed since. The roster does not save the dialog.
    pub(crate) screen_dialog: Option<ScreenDialog>,
    /// Whether the agent has reported something about its activity or its dialog since the last
    /// capture of the screens began. If so, the result of that capture is ignored for this agent.
    pub(crate) is_capture_outdated: bool,
    /// The activity in config.json at the last scan.
    pub(crate) config_activity: Option<Activity>,
    /// The task for which the agent was woken, until the agent reports something.
    pub(crate) offered_task: Option<TaskId>,
    /// The kinds of the agent's open requests.
    pub(crate) open_requests: BTreeSet<MemberRequestKind>,
    /// The long poll of the program's hooks.
    pub(crate) long_poll: LongPollState,
}

impl Agent {
    /// Forgets the dialog that the screen showed at the last capture, because the agent has
    /// reported something since.
    pub(crate) fn forget_screen_dialog(&mut self) {
        self.screen_dialog = None;
        self.is_capture_outdated = true;
    }

    /// The question of the dialog that a hook has reported or the screen has shown. `None` without
    /// a dialog.
    pub(crate) fn dialog_text(&self) -> Option<&String> {
        let on_screen = || self.screen_dialog.as_ref().map(|dialog| &dialog.text);
        self.record.hook_state.dialog.as_ref().or_else(on_screen)
    }

    /// The usage limit that delays the agent's turns, or else the usage limit in a dialog on the
    /// agent's screen. `None` if there is neither.
    pub(crate) fn usage_limit(&self) -> Option<&UsageLimit> {
        let in_turn = || self.turn.as_ref()?.pause.as_ref()?.limit();
        in_turn().or_else(|| self.screen_dialog.as_ref()?.limit.as_ref())
    }

    /// Whether the agent starts no turn and takes no task, because its last turns have failed, or
    /// because this host has no contact with the home of the agent's team.
    pub(crate) fn takes_no_work(&self) -> bool {
        let pause = self.turn.as_ref().and_then(|turn| turn.pause.as_ref());
        matches!(pause, Some(TurnPause::FailedTurns(_) | TurnPause::NoContact(_)))
    }

    /// The pause of an agent whose turns wait for contact with the home of its team.
    pub(crate) fn no_contact_pause(&self) -> Option<TurnPause> {
        self.no_contact_since.map(|since| TurnPause::NoContact(NoContactPause { since }))
    }

    pub(crate) fn new(record: SharedRecord, since: u64) -> Agent {
        Agent {
            record,
            activity: Activity::Active,
            activity_since: since,
            task_subject: None,
            turn: None,
            no_contact_since: None,
            has_reported_activity: false,
            has_reported_wrong_usage: false,
            quiet_turn: None,
            screen_dialog: None,
            is_capture_outdated: false,
            config_activity: None,
            offered_task: None,
            open_requests: BTreeSet::new(),
            long_poll: LongPollState::default(),
        }
    }
}
