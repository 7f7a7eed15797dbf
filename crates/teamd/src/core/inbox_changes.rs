//! Handles changes of inbox files: wakes the owner of the inbox and scans the file. The scan looks
//! for messages to log, answers to shutdown requests, and requests of members.

use crate::core::effect::{Effect, Wake};
use crate::core::jobs::file_jobs::{FileJob, MessageContent, RestoreRule};
use crate::core::jobs::file_results::InboxScanResult;
use crate::core::members::shutdown_requests::read_shutdown_answers;
use crate::core::state::core_state::State;
use crate::core::state::scan_running_or_needed_again::ScanState;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::team_records::recorded_teams::is_recorded;
use crate::core::turns::apply_reported_turns_and_activity;
use crate::core::{lead_session, plan_approvals_and_answers_in_inboxes};
use protocol::control_socket::Activity;
use protocol::delivery_kind::Delivery;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_message_payload::Payload;
use protocol::team_and_member_names::{MemberName, TeamName};

/// Handles a change of an inbox. Any number of changes during a scan cause one more scan.
pub(crate) fn handle_inbox_changed(context: &mut Context, team: &TeamName, inbox: &str, wake: Wake) {
    if MemberName::new_unchecked(inbox).is_lead() {
        read_shutdown_answers(context, team);
        lead_session::wake_lead(context, team);
    }
    if let Some(agent) = context.state.member(team, &MemberName::new_unchecked(inbox)) {
        context.effects.wake_agent(&agent.record.spawn_id, wake);
    }
    schedule_inbox_scan(context, team, inbox);
}

/// Schedules a scan of an inbox. If a scan of the inbox is running, one more scan follows after it,
/// however often the inbox changes meanwhile.
pub(crate) fn schedule_inbox_scan(context: &mut Context, team: &TeamName, inbox: &str) {
    let restore_rule = restore_rule(context.state, team, &MemberName::new_unchecked(inbox));
    let content =
        if is_recorded(context.state, team) { MessageContent::Whole } else { MessageContent::HeaderOnly };
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    if watched_team.inbox_scans.entry(inbox.to_owned()).or_default().try_start() {
        context.effects.push(Effect::File(FileJob::ScanInbox {
            team: team.clone(),
            inbox: inbox.to_owned(),
            restore_rule,
            content,
        }));
    }
}

/// Whether the daemon restores messages that disappear from the inbox of `owner`. Messages to an
/// owner on another host are restored. On this host, only teamd reads such an owner's inbox, and
/// teamd never removes a message.
fn restore_rule(state: &State, team: &TeamName, owner: &MemberName) -> RestoreRule {
    if team.is_claude_session() {
        return RestoreRule::Never;
    }
    if owner.is_lead() {
        return RestoreRule::ForeignProgram;
    }
    match state.member(team, owner) {
        None if state.host_links.is_on_annex(team, owner) => RestoreRule::OwnDelivery,
        None => RestoreRule::NotNow,
        Some(agent) if agent.record.lifecycle.is_exited() => RestoreRule::NotNow,
        Some(agent) => match agent.record.request.delivery {
            Delivery::Native => RestoreRule::Never,
            Delivery::Pull => RestoreRule::ForeignProgram,
            Delivery::Hook | Delivery::Acp | Delivery::Turn => RestoreRule::OwnDelivery,
        },
    }
}

pub(crate) fn handle_inbox_scanned(
    context: &mut Context,
    team: &TeamName,
    inbox: &str,
    result: Result<InboxScanResult, ErrorReport>,
) {
    let Some(watched_team) = context.state.watched_team_mut(team) else { return };
    let is_rescan_needed = watched_team.inbox_scans.remove(inbox) == Some(ScanState::RunningRescanNeeded);
    let has_more = result.as_ref().is_ok_and(|scan_result| scan_result.has_more);
    match result {
        Err(error) => {
            context.effects.push(Effect::log_team(team, EventKind::Error { message: error.message }));
        }
        Ok(scan_result) => apply_scan(context, team, &MemberName::new_unchecked(inbox), scan_result),
    }
    if is_rescan_needed {
        // The watcher or the event's handler has woken the owner for each change already.
        handle_inbox_changed(context, team, inbox, Wake::Done);
    } else if has_more {
        // The next part of the inbox is scanned only when the events about this part are in the
        // event log. Otherwise, on a slow disk, the events about a large inbox would pile up in
        // memory.
        let job = FileJob::AwaitLogged { team: team.clone(), inbox: inbox.to_owned() };
        context.effects.push(Effect::File(job));
    }
}

fn apply_scan(context: &mut Context, team: &TeamName, owner: &MemberName, scan_result: InboxScanResult) {
    plan_approvals_and_answers_in_inboxes::apply_messages(context, team, owner, &scan_result);
    for message in scan_result.new {
        if owner.is_lead() && matches!(message.payload, Some(Payload::IdleNotification(_))) {
            apply_reported_turns_and_activity::apply_native_activity(
                context,
                team,
                &message.from,
                Activity::Idle,
            );
        }
        let event_kind = EventKind::MessageStored {
            index: message.index,
            from: message.from.to_string(),
            kind: message.payload.as_ref().map_or("text", Payload::type_name).to_owned(),
            summary: message.summary,
        };
        context.effects.push(Effect::Log(Event::for_member(team, owner, event_kind)));
    }
    for message in scan_result.restored {
        let kind = message.payload.as_ref().map_or("text", Payload::type_name).to_owned();
        let event_kind = EventKind::MessageRestored {
            from: message.from.to_string(),
            kind,
            summary: message.summary.clone(),
        };
        context.effects.push(Effect::Log(Event::for_member(team, owner, event_kind)));
    }
    if let Some(unread) = scan_result.unread {
        context.effects.push(Effect::Log(Event::for_member(team, owner, EventKind::MessageRead { unread })));
    }
}
