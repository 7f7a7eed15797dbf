//! A status with what the screens show: whose program waits at a dialog now. tmux is asked when somebody asks, all panes
//! at once, and no answer waits for it longer than [`LIMIT`]: what was not seen until then is told as not known.

use super::status;
use crate::effect::Effect;
use crate::event::{ConnId, Now};
use crate::panes::{DialogPane, PaneJob};
use crate::roster::SpawnId;
use crate::state::{Agent, Onlooker, Phase, State};
use protocol::control::MemberFlag;
use std::collections::BTreeMap;

/// How long a status waits for tmux, ms.
const LIMIT: u64 = 2_000;

/// What was seen of the dialogs of those that have any.
pub(super) enum Dialogs {
    /// Nobody has asked.
    Unasked,
    /// Whether each shows one; who is not here could not be looked at.
    Seen(BTreeMap<SpawnId, bool>),
}

pub(super) fn asked(state: &mut State, client: ConnId, now: Now, out: &mut Vec<Effect>) {
    if panes(state).is_empty() {
        return status::status(state, client, &Dialogs::Unasked, out);
    }
    let onlooker = Onlooker { client, until: now.mono + LIMIT };
    match state.onlookers.under_way {
        // What it sees may be older than the question.
        Some(_) => state.onlookers.next.push(onlooker),
        None => look(state, vec![onlooker], out),
    }
}

fn look(state: &mut State, onlookers: Vec<Onlooker>, out: &mut Vec<Effect>) {
    state.onlookers.under_way = Some(onlookers);
    out.push(Effect::Pane(PaneJob::Dialogs { panes: panes(state) }));
}

pub(super) fn seen(state: &mut State, open: BTreeMap<SpawnId, bool>, out: &mut Vec<Effect>) {
    let waiting = state.onlookers.under_way.take().unwrap_or_default();
    let dialogs = Dialogs::Seen(open);
    waiting.iter().for_each(|onlooker| status::status(state, onlooker.client, &dialogs, out));
    let next = std::mem::take(&mut state.onlookers.next);
    if !next.is_empty() {
        look(state, next, out);
    }
}

pub(super) fn next_due(state: &State) -> impl Iterator<Item = u64> {
    let now = state.onlookers.under_way.iter().flatten();
    now.chain(&state.onlookers.next).map(|onlooker| onlooker.until)
}

/// The look goes on, and whoever comes meanwhile waits for the next: tmux is asked once, not again and again.
pub(super) fn due(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    let is_due = |onlooker: &mut Onlooker| onlooker.until <= now.mono;
    let mut due: Vec<Onlooker> = state.onlookers.next.extract_if(.., is_due).collect();
    due.extend(state.onlookers.under_way.iter_mut().flat_map(|waiting| waiting.extract_if(.., is_due)));
    let nothing = Dialogs::Seen(BTreeMap::new());
    due.iter().for_each(|onlooker| status::status(state, onlooker.client, &nothing, out));
}

/// The panes to look at; one that is hidden too.
fn panes(state: &State) -> Vec<DialogPane> {
    state.agents.values().filter_map(pane).collect()
}

fn pane(agent: &Agent) -> Option<DialogPane> {
    let record = &agent.record;
    let known = !record.dialog.is_empty() && !matches!(agent.phase, Phase::Gone(_));
    let pane = record.pane.as_ref().filter(|_| known)?.id()?;
    Some(DialogPane { spawn: record.spawn.clone(), pane, dialogs: record.dialog.clone() })
}

/// What is told of its dialog: by its own hook, or by its screen.
pub(super) fn flag(agent: &Agent, dialogs: &Dialogs) -> Option<MemberFlag> {
    if agent.record.heard.dialog.is_some() {
        return Some(MemberFlag::AtDialog);
    }
    let Dialogs::Seen(open) = dialogs else { return None };
    match open.get(&agent.record.spawn) {
        Some(open) => open.then_some(MemberFlag::AtDialog),
        None => pane(agent).map(|_| MemberFlag::DialogUnknown),
    }
}
