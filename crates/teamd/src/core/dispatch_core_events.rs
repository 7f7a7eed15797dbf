//! Passes each event to its handler, which changes the state and adds effects.
//!
//! `handle_event` depends only on the state, the event and the time. It does no I/O and reads no
//! clock, so the simulator can run it without files, processes or tmux.

use crate::core::apply_activities_and_modes_of_config::handle_config_checked;
use crate::core::apply_policy_to_member_requests::handle_requests_scanned;
use crate::core::connection_spawn_and_watch_ids::{ConnId, WatchId};
use crate::core::core_event::CoreEvent;
use crate::core::create_worktree::{
    fail_creation, finish_creation, handle_worktree_recorded, record_proposal,
};
use crate::core::effect::{Effect, Effects};
use crate::core::event_time::Now;
use crate::core::hosts::{
    compare_changed_files, confirm_task, fetch_branches, handle_host_events, place_member, send_logged_events,
};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::pane_jobs::{PaneJob, PaneResult};
use crate::core::jobs::worktree_jobs::WorktreeResult;
use crate::core::members::cleanup_after_exit::handle_member_deregistered;
use crate::core::members::register_and_start_agent::handle_member_registered;
use crate::core::members::set_permission_mode::handle_mode_set;
use crate::core::members::shutdown_requests::{handle_request_sent, handle_shutdown_answers};
use crate::core::members::{
    cleanup_after_exit, forced_termination, record_exit_and_decide_respawn, register_and_start_agent, spawn,
};
use crate::core::notifications_to_people::show::{
    handle_notice_shown, show_next_notice, show_notice_outside_tmux,
};
use crate::core::panes::hide_and_show::handle_hidden_panes_written;
use crate::core::panes::{hide_and_show, search_screens_for_dialogs, set_layout};
use crate::core::reply_to_client::send_reply;
use crate::core::schedule_scans::schedule_config_scan;
use crate::core::shim_connections_and_reports::acknowledge_exit;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::{Context, FollowUp};
use crate::core::stop_and_exit_of_spawn::{NameCall, NameWaiter};
use crate::core::tasks::{answer_next_task_queries, log_task_changes_and_wake_agents};
use crate::core::team_records::{record_calls_reports_and_messages, record_events_and_outputs};
use crate::core::teams::delete::handle_worktrees_removed;
use crate::core::teams::{budget, create, delete, find_new_and_deleted_teams, set_policy};
use crate::core::turns::no_output;
use crate::core::watch_team_directories::watch_session_team;
use crate::core::{
    apply_policy_to_member_requests, client_calls, create_worktree, deadlines, hold_and_release_long_polls,
    hook_reports_and_long_polls, inbox_changes, lead_session, reply_status_and_screen_contents, rescan_files,
    shim_connections_and_reports, watcher_failures_and_lost_events,
};
use protocol::control_socket::{RemovedWorktrees, Reply};
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::{EventKind, REQUESTED_STOP_REASON};

/// Handles one event: changes the state, and returns the effects in the order in which they must
/// run.
pub(crate) fn handle_event(state: &mut State, event: CoreEvent, now: Now) -> Vec<Effect> {
    let mut context = Context::new(state, now);
    BEFORE.iter().for_each(|step| step(&mut context));
    record_calls_reports_and_messages::record_event(&mut context, &event);
    compare_changed_files::compare_file_of_event(&mut context, &event);
    dispatch(&mut context, event);
    AFTER.iter().for_each(|step| step(&mut context));
    context.effects.into_vec()
}

/// What is done before every event, in this order.
const BEFORE: [fn(&mut Context); 2] = [remember_latest_time, observe_sleep];

/// What is done after every event, in this order.
const AFTER: [fn(&mut Context); 9] = [
    run_follow_ups,
    budget::count_started_turns,
    register_and_start_agent::register_batch,
    send_logged_events::send_logged_events,
    fetch_branches::fetch_branches_of_completed_tasks,
    show_next_notice,
    hold_and_release_long_polls::wake_waiting_hooks,
    record_events_and_outputs::record_effects,
    save_roster_if_changed,
];

/// Records the latest wall-clock time of all events. An event with an earlier time shows that the
/// clock was set back.
fn remember_latest_time(context: &mut Context) {
    context.state.latest_wall_ms = context.state.latest_wall_ms.max(context.now.wall);
}

/// If the machine has slept, wakes the members whose turns are paused. Their shims measure the
/// pause on the monotonic clock, which stood still during the sleep. Without the wake, the pause
/// would be too long.
fn observe_sleep(context: &mut Context) {
    if context.state.sleep_clock.observe(context.now) {
        set_policy::wake_paused_members(context, |_| true);
    }
}

/// Does the work that the handlers of this event have queued: calls that have waited for a member's
/// name, and deletions of teams whose members have exited.
pub(crate) fn run_follow_ups(context: &mut Context) {
    while let Some(follow_up) = context.follow_ups.pop_front() {
        match follow_up {
            FollowUp::RetryForName(NameWaiter { client, call }) => match call {
                NameCall::Spawn(request) => spawn::spawn(context, client, request),
                NameCall::Worktree(request) => create_worktree::create_worktree(context, client, request),
            },
            FollowUp::DeleteTeam { client, request } => delete::remove_worktrees(context, client, request),
        }
    }
}

/// If the roster has changed, saves it before all other effects of the event run. So an agent is in
/// the saved roster before any effect for this agent runs.
fn save_roster_if_changed(context: &mut Context) {
    context.state.has_roster_changed |= context.state.notices.take_changed();
    if std::mem::take(&mut context.state.has_roster_changed) {
        context.effects.insert_first(Effect::File(FileJob::SaveRoster(context.state.to_roster())));
    }
}

/// Calls the handler of an event.
fn dispatch(context: &mut Context, event: CoreEvent) {
    match event {
        CoreEvent::ClientCall { client, call } => client_calls::handle_call(context, client, *call),
        CoreEvent::InvalidCall { client, version, error } => {
            client_calls::handle_invalid_call(client, version, &error, &mut context.effects);
        }
        CoreEvent::ShimStarted { spawn, result } => {
            register_and_start_agent::handle_shim_started(context, &spawn, result);
        }
        CoreEvent::ShimConnected { conn, hello, peer } => {
            shim_connections_and_reports::handle_shim_connected(context, conn, &hello, peer);
        }
        CoreEvent::ShimReported { conn, report } => {
            shim_connections_and_reports::handle_shim_report(context, conn, report);
        }
        CoreEvent::ConnectionClosed { conn } => handle_connection_closed(context, conn),
        CoreEvent::ProcessDied { watch: WatchId::Shim(spawn) } => {
            record_exit_and_decide_respawn::handle_shim_died(context, &spawn);
        }
        CoreEvent::ProcessDied { watch: WatchId::Lead { team, process } } => {
            lead_session::handle_lead_died(context, &team, process);
        }
        CoreEvent::InboxChanged { team, inbox, owner_wake } => {
            inbox_changes::handle_inbox_changed(context, &team, &inbox, owner_wake);
        }
        CoreEvent::TaskChanged { team, task } => {
            log_task_changes_and_wake_agents::handle_task_changed(context, &team, task);
        }
        CoreEvent::ConfigChanged { team } => schedule_config_scan(context, &team),
        CoreEvent::SessionTeamChanged { team } => watch_session_team(context, team),
        CoreEvent::ProbeSeen => {
            watcher_failures_and_lost_events::handle_probe_seen(context.state, context.now);
        }
        CoreEvent::BarrierReached { barrier } => {
            answer_next_task_queries::handle_barrier_reached(context, barrier);
        }
        CoreEvent::BarrierFailed => answer_next_task_queries::answer_all_unknown(context),
        CoreEvent::WatchesAdded(purpose) => rescan_files::handle_watches_added(context, purpose),
        CoreEvent::WatchFailed => watcher_failures_and_lost_events::handle_watch_failed(context),
        CoreEvent::RootReopened(result) => {
            watcher_failures_and_lost_events::handle_root_reopened(context, result);
        }
        CoreEvent::WatcherOverflow => watcher_failures_and_lost_events::handle_overflow(context),
        CoreEvent::SocketDirectoryChanged => context.effects.push(Effect::CheckSocket),
        CoreEvent::FileJobDone(result) => handle_file_result(context, result),
        CoreEvent::PaneJobDone(result) => handle_pane_result(context, result),
        CoreEvent::OwnTmuxSessionsUsed => context.effects.push(Effect::Pane(PaneJob::MoveOutForeigners)),
        CoreEvent::HostReported { link, event } => {
            handle_host_events::handle_host_event(context, &link, event);
        }
        CoreEvent::WorktreeJobDone(result) => handle_worktree_result(context, result),
        CoreEvent::DeadlineReached => deadlines::handle_deadline(context),
        CoreEvent::NotificationFailed { reason } => {
            context.effects.push(Effect::log_daemon(EventKind::NotificationFailed { reason }));
        }
        CoreEvent::BranchFetched { team, member, failure } => {
            fetch_branches::handle_branch_fetched(context, team, member, failure);
        }
        CoreEvent::Signal(name) => handle_signal(name, &mut context.effects),
    }
}

fn handle_connection_closed(context: &mut Context, conn: ConnId) {
    shim_connections_and_reports::handle_shim_disconnected(context, conn);
    hook_reports_and_long_polls::drop_long_poll(context.state, conn);
    answer_next_task_queries::drop_query(context.state, conn);
    confirm_task::drop_client(context, conn);
    place_member::release_slots(context.state, conn);
    create_worktree::cancel_setups_of_client(context, conn);
}

fn handle_file_result(context: &mut Context, file_result: FileResult) {
    match file_result {
        FileResult::TeamCreated { creation, result } => {
            create::handle_team_created(context, *creation, result);
        }
        FileResult::MemberRegistered { spawn, result } => handle_member_registered(context, &spawn, result),
        FileResult::ShutdownRequestSent { spawn, result } => handle_request_sent(context, &spawn, result),
        FileResult::MemberDeregistered { spawn, approval, error } => {
            handle_member_deregistered(context, &spawn, approval, error);
        }
        FileResult::ExitReportRead { spawn, report } => {
            record_exit_and_decide_respawn::handle_exit_report_read(context, &spawn, report);
        }
        FileResult::TasksScanned { team, members, result, queries } => {
            log_task_changes_and_wake_agents::handle_tasks_scanned(context, &team, &members, result, queries);
        }
        FileResult::OutputTimes { times } => no_output::handle_output_times(context, times),
        FileResult::ReplyReady { client, reply } => reply_and_stop(context, client, *reply),
        FileResult::RosterNotSaved(error) => handle_roster_not_saved(context, error),
        FileResult::InboxScanned { team, inbox, result } => {
            inbox_changes::handle_inbox_scanned(context, &team, &inbox, result);
        }
        FileResult::RequestsScanned { team, result } => handle_requests_scanned(context, &team, result),
        FileResult::AnswerWritten { team, from, request, result } => {
            apply_policy_to_member_requests::handle_answer_written(context, &team, &from, &request, result);
        }
        FileResult::ModeSet { client, change, result } => handle_mode_set(context, client, change, result),
        FileResult::PolicySaved { client, request, result } => {
            set_policy::handle_policy_saved(context, client, request, result);
        }
        FileResult::ShutdownAnswers { team, answers } => handle_shutdown_answers(context, &team, answers),
        FileResult::ConfigChecked { team, snapshot } => handle_config_checked(context, &team, snapshot),
        FileResult::ExitAcknowledged { conn, result } => {
            acknowledge_exit(conn, &result, &mut context.effects);
        }
        FileResult::StopRecorded { spawn, conn } => {
            forced_termination::handle_stop_recorded(context, &spawn, conn);
        }
        FileResult::WorktreeRecorded { creation, result } => {
            handle_worktree_recorded(context, creation, result);
        }
        FileResult::DeletableChecked { client, request, result } => {
            delete::handle_deletion_checked(context, client, request, result);
        }
        FileResult::TeamDeleted { client, team, result, worktrees } => {
            delete::handle_team_deleted(context, client, &team, result, worktrees);
        }
        FileResult::Logged { team, inbox } => inbox_changes::schedule_inbox_scan(context, &team, &inbox),
        FileResult::LoggedForMirror { link, job } => compare_changed_files::push_job(context, link, job),
        FileResult::TeamsListed { teams } => find_new_and_deleted_teams::handle_teams_listed(context, teams),
        FileResult::TeamFound { team, member_count, waiting } => {
            client_calls::handle_team_found(context, team, member_count, waiting);
        }
        FileResult::RecordNotWritten { team, error } => {
            record_events_and_outputs::handle_record_not_written(context, &team, &error);
        }
        FileResult::HiddenPanesWritten { client, reply, result } => {
            handle_hidden_panes_written(context, client, reply, result);
        }
    }
}

/// Sends a reply that waited until the roster was saved. If the client has asked for the daemon's
/// shutdown, the daemon ends after the reply.
fn reply_and_stop(context: &mut Context, client: ConnId, reply: Reply) {
    send_reply(context, client, Ok(reply));
    stop_after_reply(context, client);
}

fn handle_pane_result(context: &mut Context, pane_result: PaneResult) {
    match pane_result {
        PaneResult::PaneOpened { spawn, result } => {
            register_and_start_agent::handle_pane_opened(context, &spawn, result);
        }
        PaneResult::PaneInspected { spawn, presence } => {
            record_exit_and_decide_respawn::handle_pane_inspected(context, &spawn, presence);
        }
        PaneResult::PaneClosed { spawn, error } => {
            cleanup_after_exit::handle_pane_closed(context, &spawn, error);
        }
        PaneResult::PaneMoved { client, spawn, visibility, result } => {
            hide_and_show::handle_pane_moved(context, client, &spawn, visibility, result);
        }
        PaneResult::PanesVisible { spawns } => hide_and_show::handle_panes_visible(context, &spawns),
        PaneResult::LayoutApplied { client, team, layout, result } => {
            set_layout::handle_layout_applied(context, client, team, layout, result);
        }
        PaneResult::PaneCaptured { client, result } => {
            reply_status_and_screen_contents::handle_pane_captured(context, client, result);
        }
        PaneResult::DialogsFound { dialogs } => {
            search_screens_for_dialogs::handle_dialogs_found(context, dialogs);
        }
        PaneResult::AttachedNotified { text_outside_tmux } => handle_notice_shown(context, text_outside_tmux),
    }
}

/// Records that the roster could not be saved. The agents run on, and the next rescan saves the
/// roster again.
fn handle_roster_not_saved(context: &mut Context, error: ErrorReport) {
    context.state.has_roster_save_failed = true;
    context.effects.push(Effect::log_daemon(EventKind::Error { message: error.message }));
}

/// Ends the daemon, but not its agents. The next daemon adopts the agents.
fn handle_signal(name: &'static str, effects: &mut Effects) {
    let reason = match name {
        // If the whole tmux server has ended, the agents in its panes have ended too.
        "SIGHUP" => format!("on {name}; its terminal has closed"),
        _ => format!("on {name}; the agents go on"),
    };
    effects.push(Effect::log_daemon(EventKind::DaemonStopped { reason }));
    effects.push(Effect::Exit);
}

/// Ends the daemon if `client` is the last client that waits for the daemon's shutdown. The caller
/// must have added the reply to this client already.
fn stop_after_reply(context: &mut Context, client: ConnId) {
    if context.state.final_reply_to == Some(client) {
        // The next daemon may start much later, so all notices are shown now.
        context.effects.extend(
            context
                .state
                .notices
                .take_all()
                .map(|notice| show_notice_outside_tmux(context.state, notice.text)),
        );
        context
            .effects
            .push(Effect::log_daemon(EventKind::DaemonStopped { reason: REQUESTED_STOP_REASON.to_owned() }));
        context.effects.push(Effect::Exit);
    }
}

fn handle_worktree_result(context: &mut Context, worktree_result: WorktreeResult) {
    match worktree_result {
        WorktreeResult::Proposed { client, team, name, result } => match result {
            Ok(creation) => record_proposal(context, creation),
            Err(error) => fail_creation(context, client, &team, &name, error),
        },
        WorktreeResult::Filled { creation, result, path } => {
            finish_creation(context, &creation, result, path);
        }
        WorktreeResult::UnsavedChecked { client, request, result: Ok(()) } => {
            delete::kill_members(context, client, request);
        }
        WorktreeResult::UnsavedChecked { client, request, result: Err(error) } => {
            delete::handle_team_deleted(
                context,
                client,
                &request.team,
                Err(error),
                RemovedWorktrees::default(),
            );
        }
        WorktreeResult::RemovedAll { client, request, removed_worktrees, result } => {
            handle_worktrees_removed(context, client, request, removed_worktrees, result);
        }
    }
}
