//! The step: what an event does to the state, and what is to be done about it outside.
//!
//! A plain function of (state, event, now); it reads no clock and does no I/O, so that a simulator can run
//! it without a machine. Every arm is one line; the files are named after what happens.

mod again;
mod budget;
mod create;
mod deadline;
mod delete;
mod ending;
mod heard;
mod hide;
mod hook;
mod inbox;
mod join;
mod keys;
mod lead;
mod look;
mod mode;
mod next;
mod plan;
mod policy;
mod register;
mod request;
mod requests;
mod restart;
mod screens;
mod shutdown;
mod spawn;
mod status;
mod stuck;
mod tasks;
#[cfg(test)]
mod tests;
mod turn;
mod worktree;

pub(crate) use deadline::next as next_deadline;
pub(crate) use mode::Telling;
pub(crate) use next::Asks;
pub(crate) use register::place;
pub(crate) use restart::restart;
pub(crate) use spawn::Opened;

use crate::effect::Effect;
use crate::event::{ConnId, Event, Now};
use crate::files::{FileDone, FileJob};
use crate::notices::Word;
use crate::panes::{PaneDone, PaneJob};
use crate::state::State;
use protocol::error::ErrorReport;
use protocol::event::EventKind;

/// Takes one event.
pub(crate) fn step(state: &mut State, event: Event, now: Now) -> Vec<Effect> {
    state.latest = state.latest.max(now.wall);
    state.awake.goes_on(now);
    let mut effects = Vec::new();
    let out = &mut effects;
    match event {
        Event::Request { client, call } => request::asked(state, client, *call, now, out),
        Event::Unreadable { client, version, why } => request::unreadable(client, version, &why, out),
        Event::Launched { spawn, result } => register::launched(state, &spawn, result, now, out),
        Event::Joined { conn, hello, process } => join::joined(state, conn, &hello, process, now, out),
        Event::JoinSaid { conn, said } => join::said(state, conn, said, now, out),
        Event::Closed { conn } => closed(state, conn, out),
        Event::Died { spawn } => ending::died(state, &spawn, now, out),
        Event::InboxChanged { team, inbox, rung } => inbox::changed(state, &team, &inbox, rung, out),
        Event::TasksChanged { team, task } => tasks::changed(state, &team, task, out),
        Event::ConfigChanged { team } => look::config(state, &team, out),
        Event::SessionChanged { team } => look::session(state, team, out),
        Event::WatchProven => look::watch_proven(state, now),
        Event::Marked { mark } => next::marked(state, mark, out),
        Event::Unmarked => next::missed(state, out),
        Event::Watched { probe } => look::watched(state, probe, now, out),
        Event::Unwatched => look::unwatched(state, now, out),
        Event::Root(opened) => look::root(state, opened, now, out),
        Event::Overflow => look::missed(state, now, out),
        Event::Filed(done) => filed(state, done, now, out),
        Event::Paned(done) => paned(state, done, now, out),
        Event::Worktree(done) => worktree::done(state, done, now, out),
        Event::Deadline => deadline::passed(state, now, out),
        Event::Signal(name) => signal(name, out),
    }
    budget::count(state, now, out);
    register::enrol(state, now, out);
    if let Some(word) = state.notices.take(now.mono) {
        out.push(notice(state, word));
    }
    hook::woken(state, &mut effects);
    state.dirty |= state.notices.have_changed();
    if std::mem::take(&mut state.dirty) {
        effects.insert(0, Effect::File(FileJob::Roster(state.roster())));
    }
    effects
}

fn closed(state: &mut State, conn: ConnId, out: &mut Vec<Effect>) {
    join::closed(state, conn, out);
    hook::closed(state, conn);
    next::closed(state, conn);
}

fn filed(state: &mut State, done: FileDone, now: Now, out: &mut Vec<Effect>) {
    match done {
        FileDone::Created { client, policy, result } => {
            create::created(state, client, policy, result, now, out);
        }
        FileDone::Registered { spawn, result } => register::registered(state, &spawn, result, now, out),
        FileDone::Asked { spawn, result } => shutdown::delivered(state, &spawn, result, out),
        FileDone::Farewelled { spawn, approved, left } => {
            ending::filed(state, &spawn, approved, left, now, out);
        }
        FileDone::LastWords { spawn, ended } => ending::last_words(state, &spawn, ended, now, out),
        FileDone::Tasks { team, members, result, asks } => {
            tasks::seen(state, &team, &members, result, asks, out);
        }
        FileDone::Written { written } => stuck::seen(state, written, now, out),
        FileDone::Settled { client, reply } => {
            request::answer(state, client, Ok(*reply), out);
            ending::leave(state, client, out);
        }
        FileDone::Unsaved(fault) => unsaved(state, fault, out),
        FileDone::Inbox { team, inbox, result } => inbox::seen(state, &team, &inbox, result, now, out),
        FileDone::Requests { team, result } => requests::seen(state, &team, result, now, out),
        FileDone::Answered { team, from, request, result } => {
            requests::answered(state, &team, &from, &request, result, out);
        }
        FileDone::ModeSet { client, who, result } => mode::written(state, client, who, result, out),
        FileDone::PolicySet { client, order, result } => {
            policy::written(state, client, order, result, now, out);
        }
        FileDone::Answers { team, answers } => shutdown::answers(state, &team, answers, now, out),
        FileDone::Config { team, seen } => look::config_seen(state, &team, seen, now, out),
        FileDone::Heard { conn, result } => join::heard(conn, &result, out),
        FileDone::Recorded { making, result } => worktree::recorded(state, making, result, out),
        FileDone::MayDelete { client, order, result } => {
            worktree::may_go(state, client, order, result, now, out);
        }
        FileDone::Deleted { client, team, result, swept } => {
            delete::deleted(state, client, &team, result, swept, out);
        }
        FileDone::Sessions { there } => look::sessions(state, &there, out),
        FileDone::Noted { client, reply, result } => hide::noted(state, client, reply, result, out),
    }
}

fn paned(state: &mut State, done: PaneDone, now: Now, out: &mut Vec<Effect>) {
    match done {
        PaneDone::Opened { spawn, result } => register::opened(state, &spawn, result, now, out),
        PaneDone::Looked { spawn, seen } => ending::looked(state, &spawn, seen, now, out),
        PaneDone::Closed { spawn, left } => ending::pane_closed(state, &spawn, left, now, out),
        PaneDone::Moved { client, spawn, sight, result } => {
            hide::moved(state, client, &spawn, sight, result, out);
        }
        PaneDone::InSight { spawns } => hide::in_sight(state, &spawns, out),
        PaneDone::LaidOut { client, team, layout, result } => {
            hide::laid_out(state, client, team, layout, result, out);
        }
        PaneDone::Keyed { client, result } => keys::keyed(state, client, result, out),
        PaneDone::Captured { client, result } => status::captured(state, client, result, out),
        PaneDone::Dialogs { open } => screens::seen(state, open, out),
        PaneDone::Announced { unseen } => announced(state, unseen, out),
    }
}

/// First to those who are attached, who may be looking at what it is about.
fn notice(state: &mut State, Word { text, panes }: Word) -> Effect {
    if state.setting.tmux_socket.is_some() {
        return Effect::Pane(PaneJob::Announce { text, panes });
    }
    state.notices.told();
    ring(state, text)
}

/// Those who are attached have seen it, or nobody is.
fn announced(state: &mut State, unseen: Option<String>, out: &mut Vec<Effect>) {
    state.notices.told();
    out.extend(unseen.map(|text| ring(state, text)));
}

/// Then to whoever is elsewhere.
fn ring(state: &State, text: String) -> Effect {
    let words = ["notify", "--", &text].map(str::to_owned);
    Effect::Ring { argv: [state.setting.teamctl()].into_iter().chain(words).collect(), text }
}

/// The agents go on; a daemon that was killed now would not know all of them.
fn unsaved(state: &mut State, fault: ErrorReport, out: &mut Vec<Effect>) {
    state.unsaved = true;
    out.push(Effect::of_daemon(EventKind::Error { message: fault.message }));
}

/// Ends the daemon and nothing else: the agents go on, and the next daemon adopts them.
fn signal(name: &'static str, out: &mut Vec<Effect>) {
    out.push(Effect::of_daemon(EventKind::DaemonStopped { reason: format!("on {name}; the agents go on") }));
    out.push(Effect::Exit);
}
