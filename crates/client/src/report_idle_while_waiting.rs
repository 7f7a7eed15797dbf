//! Reports that an agent is idle while it waits for a message.

use crate::root_socket_team_and_caller::TeamContext;
use protocol::control_socket::{Activity, Request};
use protocol::delivery_kind::Delivery;
use protocol::team_and_member_names::TeamName;

/// Reports to the daemon that the calling agent is idle, from [`IdleReport::begin`] to
/// [`IdleReport::end`]. Only agents with the delivery `pull` are reported, because the daemon
/// learns by other means whether other agents are idle.
#[derive(Debug)]
pub struct IdleReport<'a> {
    context: &'a TeamContext,
    stage: ReportStage,
}

#[derive(Debug, PartialEq, Eq)]
enum ReportStage {
    NotBegun,
    /// The daemon has got the report.
    Idle,
    /// The caller's delivery is not `pull`, or the daemon did not accept the report.
    NotReported,
}

impl IdleReport<'_> {
    /// Creates a report that has not begun.
    pub fn new(context: &TeamContext) -> IdleReport<'_> {
        IdleReport { context, stage: ReportStage::NotBegun }
    }

    /// Reports the caller as idle. Later calls do nothing.
    pub fn begin(&mut self) {
        if self.stage == ReportStage::NotBegun {
            let is_reported = reads_own_inbox(self.context) && report(self.context, Activity::Idle);
            self.stage = if is_reported { ReportStage::Idle } else { ReportStage::NotReported };
        }
    }

    /// Reports the calling agent as active again. Without this report, the daemon would still show
    /// the agent as idle.
    ///
    /// Not called after a wait that timed out, because the agent usually waits again soon, and the
    /// daemon would count each such change from idle to active as a turn.
    pub fn end(self) {
        if self.stage == ReportStage::Idle {
            report(self.context, Activity::Active);
        }
    }
}

/// Whether the caller is an agent with the delivery `pull`.
fn reads_own_inbox(context: &TeamContext) -> bool {
    let Some(team) = context.options().team.as_deref().and_then(|team| TeamName::parse(team).ok()) else {
        return false;
    };
    let status = context.token().and_then(|_| context.daemon_status().ok());
    let teams = status.into_iter().flat_map(|status| status.teams).filter(|candidate| candidate.name == team);
    let mut members = teams.flat_map(|team| team.members);
    members.any(|member| member.name == context.caller_name() && member.delivery == Delivery::Pull)
}

/// Sends the report. Returns whether the daemon accepted it.
fn report(context: &TeamContext, activity: Activity) -> bool {
    context.call_daemon(Request::ReportActivity(activity)).is_ok()
}
