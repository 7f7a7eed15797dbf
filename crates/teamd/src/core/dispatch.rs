//! The step: what an event does to the state, and what is to be done about it outside.
//!
//! A plain function of (state, event, now); it reads no clock and does no I/O, so that a simulator can run
//! it without a machine. Every arm is one line; the files are named after what happens.

use crate::core::clock::Now;
use crate::core::context::send_reply;
use crate::core::effect::Effect;
use crate::core::event::CoreEvent;
use crate::core::id::ConnId;
use crate::core::jobs::files::{FileJob, FileResult};
use crate::core::jobs::panes::{PaneJob, PaneResult};
use crate::core::jobs::worktrees::WorktreeResult;
use crate::core::long_poll::wake_long_polls;
use crate::core::members::{cleanup, exit, permission_mode, registration, shutdown};
use crate::core::notices::NoticeText;
use crate::core::panes::{dialog_check, typing, visibility};
use crate::core::scans::{schedule_config_scan, watch_session_team};
use crate::core::state::daemon::State;
use crate::core::tasks::{next_task, task_list};
use crate::core::teams::delete::handle_worktrees_removed;
use crate::core::teams::{budget, create, delete, policy};
use crate::core::turns::no_output;
use crate::core::worktrees::{fail_creation, finish_creation, record_proposal};
use crate::core::{
    approvals, client_calls, config_scan, deadlines, hooks, messages, rescan, shims, status, worktrees,
};
use protocol::control::RemovedWorktrees;
use protocol::error::ErrorReport;
use protocol::event::{EventKind, REQUESTED_STOP_REASON};

/// Takes one event.
pub(crate) fn handle_event(state: &mut State, event: CoreEvent, now: Now) -> Vec<Effect> {
    state.latest_wall_ms = state.latest_wall_ms.max(now.wall);
    state.sleep_clock.observe(now);
    let mut effects = Vec::new();
    let out = &mut effects;
    match event {
        CoreEvent::ClientCall { client, call } => client_calls::handle_call(state, client, *call, now, out),
        CoreEvent::InvalidCall { client, version, error: why } => {
            client_calls::handle_invalid_call(client, version, &why, out);
        }
        CoreEvent::ShimStarted { spawn, result } => {
            registration::handle_shim_started(state, &spawn, result, now, out);
        }
        CoreEvent::ShimConnected { conn, hello, peer: process } => {
            shims::handle_shim_connected(state, conn, &hello, process, now, out);
        }
        CoreEvent::ShimReported { conn, report: said } => {
            shims::handle_shim_report(state, conn, said, now, out);
        }
        CoreEvent::ConnectionClosed { conn } => handle_connection_closed(state, conn, out),
        CoreEvent::ProcessDied { spawn } => exit::handle_process_died(state, &spawn, now, out),
        CoreEvent::InboxChanged { team, inbox, is_owner_woken: rung } => {
            messages::handle_inbox_changed(state, &team, &inbox, rung, out);
        }
        CoreEvent::TaskChanged { team, task } => task_list::handle_task_changed(state, &team, task, out),
        CoreEvent::ConfigChanged { team } => schedule_config_scan(state, &team, out),
        CoreEvent::SessionTeamChanged { team } => watch_session_team(state, team, out),
        CoreEvent::ProbeSeen => rescan::handle_probe_seen(state, now),
        CoreEvent::BarrierReached { mark } => next_task::handle_barrier_reached(state, mark, out),
        CoreEvent::BarrierFailed => next_task::answer_all_unknown(state, out),
        CoreEvent::WatchesAdded { is_probe: probe } => rescan::handle_watches_added(state, probe, now, out),
        CoreEvent::WatchFailed => rescan::handle_watch_failed(state, now, out),
        CoreEvent::RootReopened(opened) => rescan::handle_root_reopened(state, opened, now, out),
        CoreEvent::WatcherOverflow => rescan::handle_overflow(state, now, out),
        CoreEvent::FileJobDone(done) => handle_file_result(state, done, now, out),
        CoreEvent::PaneJobDone(done) => handle_pane_result(state, done, now, out),
        CoreEvent::WorktreeJobDone(done) => handle_worktree_result(state, done, now, out),
        CoreEvent::DeadlineReached => deadlines::handle_deadline(state, now, out),
        CoreEvent::Signal(name) => handle_signal(name, out),
    }
    budget::count_turns(state, now, out);
    registration::register_batch(state, now, out);
    if let Some(word) = state.notices.take_due(now.mono) {
        out.push(show_notice(state, word));
    }
    wake_long_polls(state, &mut effects);
    state.has_roster_changed |= state.notices.take_changed();
    if std::mem::take(&mut state.has_roster_changed) {
        effects.insert(0, Effect::File(FileJob::SaveRoster(state.to_roster())));
    }
    effects
}

fn handle_connection_closed(state: &mut State, conn: ConnId, out: &mut Vec<Effect>) {
    shims::handle_shim_disconnected(state, conn, out);
    hooks::drop_long_poll(state, conn);
    next_task::drop_query(state, conn);
}

fn handle_file_result(state: &mut State, done: FileResult, now: Now, out: &mut Vec<Effect>) {
    match done {
        FileResult::TeamCreated { client, policy, result } => {
            create::handle_team_created(state, client, policy, result, now, out);
        }
        FileResult::MemberRegistered { spawn, result } => {
            registration::handle_member_registered(state, &spawn, result, now, out);
        }
        FileResult::ShutdownRequestSent { spawn, result } => {
            shutdown::handle_request_sent(state, &spawn, result, out);
        }
        FileResult::MemberDeregistered { spawn, is_approved: approved, error: left } => {
            cleanup::handle_member_deregistered(state, &spawn, approved, left, now, out);
        }
        FileResult::ExitReportRead { spawn, ended } => {
            exit::handle_exit_report_read(state, &spawn, ended, now, out);
        }
        FileResult::TasksScanned { team, members, result, asks } => {
            task_list::handle_tasks_scanned(state, &team, &members, result, asks, out);
        }
        FileResult::OutputTimes { written } => no_output::handle_output_times(state, written, now, out),
        FileResult::ReplyReady { client, reply } => {
            send_reply(state, client, Ok(*reply), out);
            stop_after_reply(state, client, out);
        }
        FileResult::RosterNotSaved(fault) => handle_roster_not_saved(state, fault, out),
        FileResult::InboxScanned { team, inbox, result } => {
            messages::handle_inbox_scanned(state, &team, &inbox, result, now, out);
        }
        FileResult::RequestsScanned { team, result } => {
            approvals::handle_requests_scanned(state, &team, result, now, out);
        }
        FileResult::AnswerWritten { team, from, request, result } => {
            approvals::handle_answer_written(state, &team, &from, &request, result, out);
        }
        FileResult::ModeSet { client, change: who, result } => {
            permission_mode::handle_mode_set(state, client, who, result, out);
        }
        FileResult::PolicySaved { client, order, result } => {
            policy::handle_policy_saved(state, client, order, result, now, out);
        }
        FileResult::ShutdownAnswers { team, answers } => {
            shutdown::handle_shutdown_answers(state, &team, answers, now, out);
        }
        FileResult::ConfigChecked { team, snapshot: seen } => {
            config_scan::handle_config_checked(state, &team, seen, now, out)
        }
        FileResult::ExitAcknowledged { conn, result } => shims::acknowledge_exit(conn, &result, out),
        FileResult::WorktreeRecorded { making, result } => {
            worktrees::handle_worktree_recorded(state, making, result, out);
        }
        FileResult::DeletableChecked { client, order, result } => {
            delete::handle_deletion_checked(state, client, order, result, now, out);
        }
        FileResult::TeamDeleted { client, team, result, worktrees: swept } => {
            delete::handle_team_deleted(state, client, &team, result, swept, out);
        }
        FileResult::SessionTeamsListed { teams: there } => rescan::handle_session_teams(state, &there, out),
        FileResult::HiddenPanesWritten { client, reply, result } => {
            visibility::handle_hidden_panes_written(state, client, reply, result, out);
        }
    }
}

fn handle_pane_result(state: &mut State, done: PaneResult, now: Now, out: &mut Vec<Effect>) {
    match done {
        PaneResult::PaneOpened { spawn, result } => {
            registration::handle_pane_opened(state, &spawn, result, now, out);
        }
        PaneResult::PaneInspected { spawn, seen } => {
            exit::handle_pane_inspected(state, &spawn, seen, now, out);
        }
        PaneResult::PaneClosed { spawn, error: left } => {
            cleanup::handle_pane_closed(state, &spawn, left, now, out)
        }
        PaneResult::PaneMoved { client, spawn, sight, result } => {
            visibility::handle_pane_moved(state, client, &spawn, sight, result, out);
        }
        PaneResult::PanesVisible { spawns } => visibility::handle_panes_visible(state, &spawns, out),
        PaneResult::LayoutApplied { client, team, layout, result } => {
            visibility::handle_layout_applied(state, client, team, layout, result, out);
        }
        PaneResult::KeysTyped { client, result } => typing::handle_keys_typed(state, client, result, out),
        PaneResult::PaneCaptured { client, result } => {
            status::handle_pane_captured(state, client, result, out);
        }
        PaneResult::DialogsFound { open } => dialog_check::handle_dialogs_found(state, open, out),
        PaneResult::AttachedNotified { unseen } => handle_notice_shown(state, unseen, out),
    }
}

/// First to those who are attached, who may be looking at what it is about.
fn show_notice(state: &mut State, NoticeText { text, panes }: NoticeText) -> Effect {
    if state.settings.tmux_socket.is_some() {
        return Effect::Pane(PaneJob::NotifyAttached { text, panes });
    }
    state.notices.confirm_shown();
    show_notice_outside_tmux(state, text)
}

/// Those who are attached have seen it, or nobody is.
fn handle_notice_shown(state: &mut State, unseen: Option<String>, out: &mut Vec<Effect>) {
    state.notices.confirm_shown();
    out.extend(unseen.map(|text| show_notice_outside_tmux(state, text)));
}

/// Then to whoever is elsewhere.
pub(crate) fn show_notice_outside_tmux(state: &State, text: String) -> Effect {
    let words = ["notify", "--", &text].map(str::to_owned);
    Effect::ShowNotice { argv: [state.settings.teamctl_path()].into_iter().chain(words).collect(), text }
}

/// The agents go on; a daemon that was killed now would not know all of them.
fn handle_roster_not_saved(state: &mut State, fault: ErrorReport, out: &mut Vec<Effect>) {
    state.has_roster_save_failed = true;
    out.push(Effect::log_daemon(EventKind::Error { message: fault.message }));
}

/// Ends the daemon and nothing else: the agents go on, and the next daemon adopts them.
fn handle_signal(name: &'static str, out: &mut Vec<Effect>) {
    out.push(Effect::log_daemon(EventKind::DaemonStopped { reason: format!("on {name}; the agents go on") }));
    out.push(Effect::Exit);
}

/// It has gone down, and this is who was told so last.
pub(crate) fn stop_after_reply(state: &mut State, client: ConnId, out: &mut Vec<Effect>) {
    if state.final_reply_to == Some(client) {
        // The next daemon may be another day's.
        out.extend(state.notices.take_all().map(|word| show_notice_outside_tmux(state, word.text)));
        out.push(Effect::log_daemon(EventKind::DaemonStopped { reason: REQUESTED_STOP_REASON.to_owned() }));
        out.push(Effect::Exit);
    }
}

pub(crate) fn handle_worktree_result(
    state: &mut State,
    done: WorktreeResult,
    now: Now,
    out: &mut Vec<Effect>,
) {
    match done {
        WorktreeResult::Proposed { client, team, name, result } => match result {
            Ok(making) => record_proposal(state, making, out),
            Err(fault) => fail_creation(state, client, &team, &name, fault, out),
        },
        WorktreeResult::Filled { making, result, is_present: is_there } => {
            finish_creation(state, &making, result, is_there, now, out)
        }
        WorktreeResult::UnsavedChecked { client, order, result: Ok(()) } => {
            delete::kill_members(state, client, order, now, out);
        }
        WorktreeResult::UnsavedChecked { client, order, result: Err(fault) } => {
            delete::handle_team_deleted(
                state,
                client,
                &order.team,
                Err(fault),
                RemovedWorktrees::default(),
                out,
            );
        }
        WorktreeResult::RemovedAll { client, order, swept: news, result } => {
            handle_worktrees_removed(state, client, order, news, result, out);
        }
    }
}
