//! Sessions that lead a team: a person's, or another program's, in a terminal that is not ours. They are known by the
//! first process of that terminal, and lead until they say otherwise or that process ends. Nothing of theirs is ever
//! closed, ended or typed into.

use super::heard::{self, Word};
use super::hook::{foreign, nobody, release, wait, wake};
use super::request::answer;
use super::spawn::no_such_team;
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::files::FileJob;
use crate::roster::{Heard, Process, SpawnId};
use crate::state::{Leading, State};
use protocol::control::{HookEvent, HookReply, HookReport, LeadProcess, LongPollEnd, Reply, SetLeadRequest};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;

pub(super) fn lead(state: &mut State, client: ConnId, order: SetLeadRequest, out: &mut Vec<Effect>) {
    let done = match order {
        SetLeadRequest::Take(lead) => take(state, lead, out),
        SetLeadRequest::Release(team) => leave(state, &team, out),
    };
    match done {
        Err(fault) => answer(state, client, Err(fault), out),
        // The roster goes ahead of it: whoever has the answer finds the file.
        Ok(()) => out.push(Effect::File(FileJob::Settled { client, reply: Box::new(Reply::Ack) })),
    }
}

fn take(state: &mut State, lead: LeadProcess, out: &mut Vec<Effect>) -> Result<(), ErrorReport> {
    if !state.teams.contains_key(&lead.team) {
        return Err(no_such_team(state, &lead.team));
    }
    let same = |other: &LeadProcess| (other.pid, other.start_time) == (lead.pid, lead.start_time);
    let leads = || state.leads.values().map(|leading| &leading.lead);
    if let Some(other) = leads().find(|other| same(other) && other.team != lead.team) {
        let message = format!("cannot lead {}: this session leads {} already", lead.team, other.team);
        return Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
            .with_help(format!("leave that first: teamctl lead --release -t {}", other.team)));
    }
    if let Some(other) = leads().find(|other| other.team == lead.team && !same(other)) {
        let place = other.pane.as_ref().map_or(String::new(), |pane| format!(" in pane {pane}"));
        let message = format!("cannot lead {}: another session does{place}, pid {}", lead.team, other.pid);
        return Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
            .with_help(format!("there: teamctl lead --release -t {}", lead.team)));
    }
    if let Some(leading) = state.leads.get_mut(&lead.team) {
        // Whichever program of it speaks next is the one.
        leading.heard = Heard::default();
    } else {
        state.dirty = true;
        let leading = Leading::new(lead);
        out.push(leading.watched());
        state.leads.insert(leading.lead.team.clone(), leading);
    }
    Ok(())
}

/// Nobody leads it from a session any more.
pub(super) fn leave(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) -> Result<(), ErrorReport> {
    let missing = || {
        ErrorReport::new(ErrorKind::NotFound, format!("cannot leave {team}: no session leads it"))
            .with_help(format!("lead it from here with: teamctl lead {team}"))
    };
    let mut leading = state.leads.remove(team).ok_or_else(missing)?;
    release(&mut leading.hooks, LongPollEnd::AgentExited, out);
    out.push(Effect::Forget { spawn: leading.life });
    state.dirty = true;
    Ok(())
}

/// The first process of its terminal has ended; false where it is no lead's.
pub(super) fn died(state: &mut State, life: &SpawnId, out: &mut Vec<Effect>) -> bool {
    let team = state.leads.iter().find(|(_, leading)| leading.life == *life).map(|(team, _)| team.clone());
    team.is_some_and(|team| leave(state, &team, out).is_ok())
}

pub(super) fn said(
    state: &mut State,
    team: &TeamName,
    hooked: &HookReport,
    now: Now,
    out: &mut Vec<Effect>,
) -> Result<HookReply, ErrorReport> {
    let leading = state.leads.get_mut(team).ok_or_else(nobody)?;
    let handed = leading.heard.handed.clone();
    let reply = HookReply { delivers_by_hook: true, delivered_ids: handed, ..foreign(leading.since) };
    match heard::of_lead(leading, hooked) {
        Word::Foreign => return Ok(foreign(leading.since)),
        Word::OfNewSession(session) => {
            leading.heard.above.clone_from(&hooked.ancestors);
            leading.lead.session_id = Some(session.clone());
            state.dirty = true;
            out.push(Effect::File(FileJob::LeadSession { team: team.clone(), session }));
        }
        Word::Own => {}
    }
    match &hooked.event {
        HookEvent::TurnStarted { delivered_ids: handed, .. } => {
            if !handed.is_empty() {
                leading.heard.handed.clone_from(handed);
            }
            leading.since = now.wall;
            release(&mut leading.hooks, LongPollEnd::PersonTyped, out);
        }
        HookEvent::TurnEnded => leading.hooks.look = false,
        _ => {}
    }
    Ok(reply)
}

pub(super) fn park(
    state: &mut State,
    team: &TeamName,
    client: ConnId,
    out: &mut Vec<Effect>,
) -> Result<(), ErrorReport> {
    let leading = state.leads.get_mut(team).ok_or_else(nobody)?;
    wait(&mut leading.hooks, client, out);
    Ok(())
}

/// Something is in the lead's inbox.
pub(super) fn mail(state: &mut State, team: &TeamName, out: &mut Vec<Effect>) {
    if let Some(leading) = state.leads.get_mut(team) {
        wake(&mut leading.hooks, out);
    }
}

impl Leading {
    /// Its end is told by its pidfd.
    pub(super) fn watched(&self) -> Effect {
        let process = Process { pid: self.lead.pid, start_time: self.lead.start_time };
        Effect::Watch { spawn: self.life.clone(), process }
    }
}
