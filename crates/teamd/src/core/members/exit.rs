//! How an agent ends: by itself, ended by us, its pane closed, tmux gone, its join killed. Told apart by
//! proof, told to the lead once, and put in order: pane closed and verified, member removed, task completed.

use crate::core::dispatch::show_notice_outside_tmux;
use crate::core::effect::Effect;
use crate::core::event::{ConnId, Now};
use crate::core::exit_record::{ExitOutcome, ExitRecord, ReportTo};
use crate::core::jobs::files::FileJob;
use crate::core::jobs::panes::{PaneJob, PanePresence};
use crate::core::lifecycle::{Cleanup, Exited, Lifecycle, NameWaiter, Stopping};
use crate::core::members::plan_handover::PLAN_APPROVED;
use crate::core::members::registration::close_pane;
use crate::core::members::restart_policy::NextSpawn;
use crate::core::members::shutdown::TERM_GRACE;
use crate::core::members::{plan_handover, registration, restart_policy, shutdown, spawn};
use crate::core::notices::NoticeKind;
use crate::core::panes::visibility;
use crate::core::roster::UNKNOWN_START;
use crate::core::roster::record::{AgentPane, AgentRecord, SpawnId};
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::state::waiters::AfterExits;
use crate::core::tasks::task_list;
use crate::core::turns::activity;
use crate::core::{approvals, hooks, lead_session, worktrees};
use protocol::control::{AgentExit, ExitReport, LongPollEnd, PastMember, ToShim};
use protocol::error::ErrorReport;
use protocol::event::{EventKind, REQUESTED_STOP_REASON};

/// join's own end comes at the latest this long after KILL, ms.
pub(crate) const KILL_GRACE: u64 = 3_000;
/// How one has ended that nobody has seen run.
pub(crate) const STOPPED_WHILE_STARTING: &str = "stopped while it started";

/// Ends a running agent by force: TERM, then KILL.
pub(crate) fn terminate(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let link = match &mut agent.lifecycle {
        Lifecycle::Running(link) => std::mem::take(link),
        Lifecycle::Stopping(_, Stopping::Terminating { .. })
        | Lifecycle::Starting(_)
        | Lifecycle::Gone(_) => return,
        Lifecycle::Stopping(link, _) => std::mem::take(link),
    };
    agent.record.has_handover = false;
    agent.record.is_forced = true;
    agent.lifecycle = Lifecycle::Stopping(link, forced_termination(now));
    state.has_roster_changed = true;
    send_terminate(state, id, out);
}

pub(crate) fn forced_termination(now: Now) -> Stopping {
    Stopping::Terminating { until: now.mono + TERM_GRACE + KILL_GRACE, is_forced: true }
}

/// Lets an agent that approved, and did not end, feel TERM and KILL; it still counts as approved.
pub(crate) fn terminate_approved(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Lifecycle::Stopping(_, stopping) = &mut agent.lifecycle else { return };
    *stopping = Stopping::Terminating { until: now.mono + TERM_GRACE + KILL_GRACE, is_forced: false };
    send_terminate(state, id, out);
}

/// Tells join to end its agent, where there is a join to tell; it is told again when it reconnects.
pub(crate) fn send_terminate(state: &State, id: &SpawnId, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get(id) else { return };
    if let Lifecycle::Stopping(link, Stopping::Terminating { .. } | Stopping::TerminatingForPlan { .. }) =
        &agent.lifecycle
        && let Some(conn) = link.conn
    {
        out.push(Effect::SendToShim { conn, message: ToShim::End { grace_ms: TERM_GRACE } });
    }
}

/// join's report. A hang-up can mean two things: tmux is asked which.
pub(crate) fn handle_exit_report(
    state: &mut State,
    id: &SpawnId,
    how: ExitReport,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    agent.record.exit_report = Some(how.clone());
    state.has_roster_changed = true;
    match (&how, &agent.record.pane) {
        (ExitReport::TerminalGone, Some(pane)) => {
            out.push(Effect::Pane(PaneJob::InspectPane { spawn: id.clone(), pane: pane.clone() }));
        }
        _ => record_exit(state, id, how, now, out),
    }
}

/// What tmux said about a pane whose terminal went away.
pub(crate) fn handle_pane_inspected(
    state: &mut State,
    id: &SpawnId,
    seen: PanePresence,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let how = match seen {
        PanePresence::Absent => ExitReport::PaneClosed,
        PanePresence::ServerGone => ExitReport::TmuxServerGone,
        PanePresence::Present | PanePresence::Unknown => ExitReport::TerminalGone,
    };
    record_exit(state, id, how, now, out);
}

/// join is dead. If it left no word in the state directory, somebody killed it: its orphans are swept.
pub(crate) fn handle_process_died(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get(id) else {
        lead_session::handle_lead_died(state, id, out);
        return;
    };
    match &agent.lifecycle {
        Lifecycle::Gone(_) => {}
        // Its report came first, and is being looked into.
        Lifecycle::Running(_) | Lifecycle::Stopping(..) if agent.record.exit_report.is_some() => {}
        Lifecycle::Starting(_) => {
            // Between its agent's start and our hearing of it, it may have left something.
            let token = agent.record.token.clone();
            out.push(Effect::File(FileJob::ReadExitReport { spawn: id.clone(), token }));
            registration::fail_start(state, id, registration::shim_exited_error(), now, out);
        }
        Lifecycle::Running(_) | Lifecycle::Stopping(..) => {
            let token = agent.record.token.clone();
            out.push(Effect::File(FileJob::ReadExitReport { spawn: id.clone(), token }));
        }
    }
}

/// What a dead join left in writing; without that it was killed.
pub(crate) fn handle_exit_report_read(
    state: &mut State,
    id: &SpawnId,
    words: Option<ExitReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    // A machine that goes down ends all of them first, and each join leaves word of that.
    let is_of_before = |agent: &Agent| agent.record.shim.is_some_and(|join| join.start_time == UNKNOWN_START);
    let how = match state.agents.get(id).is_some_and(is_of_before) {
        true => ExitReport::Rebooted,
        false => words.unwrap_or(ExitReport::ShimKilled),
    };
    handle_exit_report(state, id, how, now, out);
}

/// The agent is gone, and we know how.
pub(crate) fn record_exit(state: &mut State, id: &SpawnId, how: ExitReport, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    if how == ExitReport::TmuxServerGone {
        // There is nothing left to close, and its id means another pane on the next server.
        agent.record.pane = None;
    }
    if matches!(agent.lifecycle, Lifecycle::Starting(_)) {
        // Between the green light and its first word: whoever asked for it waits.
        return registration::fail_start(state, id, registration::shim_exited_error(), now, out);
    }
    let goes_on = !state.daemon_shutdown.is_in_progress() && plan_handover::is_handover_pending(agent);
    let (said, outcome, told) = match &agent.lifecycle {
        Lifecycle::Gone(_) => return,
        _ if goes_on => (PLAN_APPROVED.to_owned(), ExitOutcome::Completed, ReportTo::Nobody),
        Lifecycle::Stopping(
            _,
            Stopping::Approved { .. } | Stopping::Terminating { is_forced: false, .. },
        ) => ("approved".to_owned(), ExitOutcome::Completed, ReportTo::Nobody),
        Lifecycle::Stopping(_, Stopping::Terminating { is_forced: true, .. })
            if agent.record.agent_pid.is_none() =>
        {
            (STOPPED_WHILE_STARTING.to_owned(), ExitOutcome::Killed, ReportTo::Lead)
        }
        Lifecycle::Stopping(_, Stopping::Terminating { is_forced: true, .. }) => {
            (format!("killed ({how})"), ExitOutcome::Killed, ReportTo::Lead)
        }
        _ => (how.to_string(), classify_exit(&how), ReportTo::Lead),
    };
    let (record, running) = (agent.record.clone(), matches!(agent.lifecycle, Lifecycle::Running(_)));
    out.push(Effect::log_member(
        &record,
        EventKind::MemberExited { outcome: outcome.as_str().to_owned(), description: said.clone() },
    ));
    let failed = running && is_failure(&how) && has_run(&record, &how);
    let next = match (goes_on, failed) {
        _ if record.is_suspended_on_exit => restart_policy::suspend(state, &record, now, out),
        (true, _) => plan_handover::respawn_for_plan(state, &record, now, out),
        (false, true) => match restart_policy::respawn_after_failure(state, &record, now, out) {
            // What was brought back, and had not begun, is not lost with teamd.
            NextSpawn::NoRespawn if how == ExitReport::Rebooted || record.agent_pid.is_none() => {
                restart_policy::suspend(state, &record, now, out)
            }
            next => next,
        },
        (false, false) if running && how == ExitReport::TmuxServerGone => {
            restart_policy::suspend(state, &record, now, out)
        }
        (false, false) => NextSpawn::NoRespawn,
    };
    if let (true, Some(news)) = (running, exit_notice(&how, &next)) {
        state.notices.add(&record.team, &record.name, None, news);
    }
    let past = PastMember {
        name: record.name.clone(),
        outcome: outcome.as_str().to_owned(),
        description: said.clone(),
        ended_at: now.wall,
        respawns_at: next.respawns_at(now),
        is_suspended: next == NextSpawn::Suspended,
        usage: record.usage(),
    };
    state.add_past_member(&record.team, past);
    if let Some(agent) = state.agents.get_mut(id) {
        agent.record.exit = Some(ExitRecord {
            description: said,
            outcome,
            next_step: next.describe_for_lead(&record.team),
            ended_at: now.wall,
            report_to: told,
        });
    }
    activity::fail_interrupt_waiters(state, id, out);
    start_cleanup(state, id, out);
}

fn classify_exit(how: &ExitReport) -> ExitOutcome {
    match how {
        ExitReport::Exit(0) => ExitOutcome::Completed,
        ExitReport::PaneClosed => ExitOutcome::Killed,
        _ => ExitOutcome::Failed,
    }
}

/// What of the end of one that nobody has asked to end needs a person. Its pane was closed by one.
fn exit_notice(how: &ExitReport, next: &NextSpawn) -> Option<NoticeKind> {
    match (how, next) {
        (ExitReport::TerminalGone, NextSpawn::NoRespawn) => Some(NoticeKind::Exited),
        (_, NextSpawn::NoRespawn | NextSpawn::GivenUp(_)) => is_failure(how).then_some(NoticeKind::Exited),
        (ExitReport::Rebooted | ExitReport::TmuxServerGone, NextSpawn::Suspended) => {
            Some(NoticeKind::Suspended)
        }
        (_, NextSpawn::Respawn { .. } | NextSpawn::Suspended) => None,
    }
}

/// What a next life may mend. A pane that a person closed is meant so; where tmux itself is gone all rest, and nothing
/// comes back by itself.
fn is_failure(how: &ExitReport) -> bool {
    match how {
        ExitReport::Exit(code) => *code != 0,
        ExitReport::Signal(_)
        | ExitReport::ShimKilled
        | ExitReport::Rebooted
        | ExitReport::TurnNotStarted(_) => true,
        ExitReport::TerminalGone | ExitReport::PaneClosed | ExitReport::TmuxServerGone => false,
    }
}

/// Whether there was a life to be followed by another. A start that came to nothing, or that nobody saw through, may
/// stand in the roster of a daemon that was killed; whoever asked for it was not told that it runs. Only a join whose
/// agent has ended leaves a word.
fn has_run(record: &AgentRecord, how: &ExitReport) -> bool {
    let unseen = matches!(how, ExitReport::ShimKilled | ExitReport::Rebooted);
    record.agent_pid.is_some() || !unseen || registration::is_respawn(record)
}

/// Takes an agent that does not run out of tmux and of the files. Without an end on record it never ran.
pub(crate) fn start_cleanup(state: &mut State, id: &SpawnId, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let how = agent.record.exit.as_ref().map_or("not spawned", |end| &end.description).to_owned();
    let pane = agent.record.pane.as_ref().and_then(AgentPane::pane_and_window);
    hooks::release_long_poll(&mut agent.long_poll, LongPollEnd::AgentExited, out);
    let closed = if pane.is_none() { Cleanup::Done } else { Cleanup::Pending };
    agent.lifecycle = Lifecycle::Gone(Exited {
        description: how,
        pane_cleanup: closed,
        file_cleanup: Cleanup::Pending,
        name_waiters: Vec::new(),
    });
    out.push(Effect::File(FileJob::DeregisterMember { record: agent.record.clone() }));
    let hidden = std::mem::take(&mut agent.record.is_hidden).then(|| agent.record.team.clone());
    if let Some(pane) = pane {
        out.push(close_pane(id, pane));
    }
    state.has_roster_changed = true;
    if let Some(team) = hidden {
        out.push(visibility::write_hidden_panes(state, &team, None));
    }
}

/// tmux has closed the pane, or says that it is not ours, or nothing.
pub(crate) fn handle_pane_closed(
    state: &mut State,
    id: &SpawnId,
    left: Option<ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let order = if left.is_some() { Cleanup::Failed } else { Cleanup::Done };
    let why = left.map(|fault| format!("its pane is not closed yet: {}", fault.message));
    finish_cleanup_step(state, id, why, now, out, |gone| gone.pane_cleanup = order);
    finish_cleanup(state, id, now, out);
}

/// The files no longer hold it, or could not be changed.
pub(crate) fn handle_member_deregistered(
    state: &mut State,
    id: &SpawnId,
    approved: bool,
    left: Option<ErrorReport>,
    now: Now,
    out: &mut Vec<Effect>,
) {
    let Some(team) = state.agents.get(id).map(|agent| agent.record.team.clone()) else { return };
    let order = if left.is_some() { Cleanup::Failed } else { Cleanup::Done };
    let why = left.map(|fault| format!("not taken off the team yet: {}", fault.message));
    finish_cleanup_step(state, id, why, now, out, |gone| {
        gone.file_cleanup = order;
        if approved {
            gone.description = "approved".to_owned();
        }
    });
    if approved {
        correct_past_outcome(state, id);
    }
    finish_cleanup(state, id, now, out);
    // What it asked nobody has to answer any more.
    approvals::schedule_request_scan_if_open(state, &team, out);
}

/// Where something is left over, its waits end all the same, and its name stays taken.
fn finish_cleanup_step(
    state: &mut State,
    id: &SpawnId,
    left: Option<String>,
    now: Now,
    out: &mut Vec<Effect>,
    set: impl FnOnce(&mut Exited),
) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let Lifecycle::Gone(gone) = &mut agent.lifecycle else { return };
    set(gone);
    let how = gone.description.clone();
    if let Some(why) = left {
        let heirs = std::mem::take(&mut gone.name_waiters);
        out.push(Effect::log_member(&agent.record, EventKind::Error { message: why }));
        report_to_waiters(state, id, &how, WaitOutcome::Gone);
        retry_name_waiters(state, heirs, now, out);
        reply_to_finished_waiters(state, out);
    }
}

/// Those who waited for a name ask again.
fn retry_name_waiters(state: &mut State, heirs: Vec<(ConnId, NameWaiter)>, now: Now, out: &mut Vec<Effect>) {
    for (client, heir) in heirs {
        match heir {
            NameWaiter::Spawn(order) => spawn::spawn(state, client, order, now, out),
            NameWaiter::Worktree(order) => worktrees::create_worktree(state, client, order, now, out),
        }
    }
}

/// Its yes was read only after its end was seen.
fn correct_past_outcome(state: &mut State, id: &SpawnId) {
    let Some(record) = state.agents.get(id).map(|agent| agent.record.clone()) else { return };
    let Some(team) = state.teams.get_mut(&record.team) else { return };
    for past in team.past_members.iter_mut().filter(|past| past.name == record.name) {
        past.outcome = ExitOutcome::Completed.as_str().to_owned();
        past.description = "approved".to_owned();
    }
}

/// What could not be put in order is tried again, the roster first: nobody hears of an end that it does not have.
pub(crate) fn retry_failed_cleanups(state: &mut State, out: &mut Vec<Effect>) {
    state.has_roster_changed |= std::mem::take(&mut state.has_roster_save_failed);
    for (id, agent) in &mut state.agents {
        let Lifecycle::Gone(gone) = &mut agent.lifecycle else { continue };
        if gone.file_cleanup == Cleanup::Failed {
            gone.file_cleanup = Cleanup::Pending;
            out.push(Effect::File(FileJob::DeregisterMember { record: agent.record.clone() }));
        }
        if let (Cleanup::Failed, Some(pane)) =
            (gone.pane_cleanup, agent.record.pane.as_ref().and_then(AgentPane::pane_and_window))
        {
            gone.pane_cleanup = Cleanup::Pending;
            out.push(close_pane(id, pane));
        }
    }
}

/// The last step, once pane and files are in order: the name is free again.
fn finish_cleanup(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(Lifecycle::Gone(gone)) = state.agents.get_mut(id).map(|agent| &mut agent.lifecycle) else {
        return;
    };
    if gone.pane_cleanup != Cleanup::Done || gone.file_cleanup != Cleanup::Done {
        return;
    }
    let (how, heirs) = (gone.description.clone(), std::mem::take(&mut gone.name_waiters));
    report_to_waiters(state, id, &how, WaitOutcome::Gone);
    let record = state.agents.remove(id).map(|agent| agent.record);
    record.iter().for_each(|record| restart_policy::name_freed(state, &record.team, &record.name));
    let team = record.map(|record| record.team.clone());
    state.has_roster_changed = true;
    // What it left in progress is told now, and what it was offered goes to another.
    if let Some(team) = team {
        task_list::schedule_task_scan(state, &team, out);
    }
    out.push(Effect::CloseHandles { spawn: id.clone() });
    // The answers first: what was waited for may be the end of the daemon.
    retry_name_waiters(state, heirs, now, out);
    reply_to_finished_waiters(state, out);
}

/// What became of an agent that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// It ended.
    Gone,
    /// It lives on.
    StillRunning,
}

/// Tells every wait what became of this agent.
pub(crate) fn report_to_waiters(state: &mut State, id: &SpawnId, how: &str, left: WaitOutcome) {
    let Some(agent) = state.agents.get(id) else { return };
    let request_id = agent.record.shutdown_requests.first().map(ToString::to_string);
    let gone = left == WaitOutcome::Gone;
    let (name, team) = (agent.record.name.clone(), Some(agent.record.team.clone()));
    let ended = AgentExit {
        name,
        team,
        description: how.to_owned(),
        has_exited: gone,
        is_suspended: false,
        request_id,
    };
    for waiting in &mut state.exit_waiters {
        if waiting.pending.remove(id) {
            waiting.ended.push(ended.clone());
        }
    }
}

/// Answers the waits that have nothing left to wait for.
pub(crate) fn reply_to_finished_waiters(state: &mut State, out: &mut Vec<Effect>) {
    let (done, pending) =
        std::mem::take(&mut state.exit_waiters).into_iter().partition(|w| w.pending.is_empty());
    state.exit_waiters = pending;
    for mut waiting in done {
        match waiting.after.clone() {
            AfterExits::Reply => out.push(shutdown::reply_exits(waiting.client, waiting.ended)),
            AfterExits::Delete(order) => worktrees::remove_worktrees(state, waiting.client, order, out),
            AfterExits::StopDaemon => {
                restart_policy::mark_suspended(state, &mut waiting.ended);
                state.final_reply_to = Some(waiting.client);
                out.push(shutdown::reply_exits(waiting.client, waiting.ended));
            }
        }
    }
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

/// An agent that does not even end by KILL, or whose join does not listen.
pub(crate) fn kill_shim(state: &State, id: &SpawnId, out: &mut Vec<Effect>) {
    if state.agents.contains_key(id) {
        out.push(Effect::KillShim { spawn: id.clone() });
    }
}
