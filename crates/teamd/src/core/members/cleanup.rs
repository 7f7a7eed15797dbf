//! The cleanup after an exit: the pane is closed and the member deregistered; then its name is free.

use crate::core::clock::Now;
use crate::core::effect::Effect;
use crate::core::exit_record::ExitOutcome;
use crate::core::id::{ConnId, SpawnId};
use crate::core::jobs::files::FileJob;
use crate::core::jobs::panes::PaneJob;
use crate::core::lifecycle::{Cleanup, Exited, Lifecycle, NameWaiter};
use crate::core::long_poll::release_long_poll;
use crate::core::members::{restart_policy, spawn};
use crate::core::roster::record::AgentPane;
use crate::core::scans::{schedule_request_scan_if_open, schedule_task_scan, write_hidden_panes};
use crate::core::state::daemon::State;
use crate::core::waits::{WaitOutcome, reply_to_finished_waiters, report_to_waiters};
use crate::core::worktrees;
use protocol::control::LongPollEnd;
use protocol::error::ErrorReport;
use protocol::event::EventKind;
use tmux::{PaneId, WindowId};

/// Takes an agent that does not run out of tmux and of the files. Without an end on record it never ran.
pub(crate) fn start_cleanup(state: &mut State, id: &SpawnId, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    let how = agent.record.exit.as_ref().map_or("not spawned", |end| &end.description).to_owned();
    let pane = agent.record.pane.as_ref().and_then(AgentPane::pane_and_window);
    release_long_poll(&mut agent.long_poll, LongPollEnd::AgentExited, out);
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
        out.push(write_hidden_panes(state, &team, None));
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
    schedule_request_scan_if_open(state, &team, out);
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
        schedule_task_scan(state, &team, out);
    }
    out.push(Effect::CloseHandles { spawn: id.clone() });
    // The answers first: what was waited for may be the end of the daemon.
    retry_name_waiters(state, heirs, now, out);
    reply_to_finished_waiters(state, out);
}

pub(crate) fn close_pane(spawn: &SpawnId, (pane, window): (PaneId, Option<WindowId>)) -> Effect {
    Effect::Pane(PaneJob::ClosePane { spawn: spawn.clone(), pane, owner: spawn.pane_tag(), window })
}
