//! What a team may use up: turns, and time since it was made. Once either is spent its members are asked to end, and
//! rest; nobody is started for it until its policy gives it more.

use super::shutdown;
use crate::effect::Effect;
use crate::event::Now;
use crate::state::{State, Team};
use protocol::control::Budget;
use protocol::event::What;
use protocol::fault::{Fault, Kind};
use protocol::name::TeamName;

/// Counts the turns that have just begun. One that a daemon finds under way at its start it counts once more.
pub(super) fn count(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    let begun = out.iter().filter_map(|effect| match effect {
        Effect::Log(event) if matches!(event.what, What::MemberActive { .. }) => event.team.clone(),
        _ => None,
    });
    for team in begun.collect::<Vec<_>>() {
        let Some(known) = state.teams.get_mut(&team) else { continue };
        known.spent.turns += 1;
        state.dirty |= known.policy.turns.is_some();
        look(state, &team, now, out);
    }
}

/// Whether it is spent, under the policy as it is now; and when its time will be.
pub(super) fn look(state: &mut State, team: &TeamName, now: Now, out: &mut Vec<Effect>) {
    let Some(known) = state.teams.get_mut(team) else { return };
    let left = left_ms(known, now);
    let why = why(known, left);
    known.spent_at = left.filter(|_| why.is_none()).map(|left| now.mono.saturating_add(left));
    let is_news = why.is_some() && known.spent.why.is_none();
    state.dirty |= known.spent.why != why;
    known.spent.why.clone_from(&why);
    if let Some(why) = why.filter(|_| is_news) {
        out.push(Effect::of_team(team, What::BudgetSpent { why: why.clone() }));
        state.notices.add_spent(team);
        shutdown::ask_members(state, team, &why, now, out);
    }
}

/// Those whose time is over by now.
pub(super) fn due(state: &mut State, now: Now, out: &mut Vec<Effect>) {
    let over = |known: &Team| known.spent_at.is_some_and(|at| at <= now.mono);
    let teams = state.teams.iter().filter(|(_, known)| over(known)).map(|(team, _)| team.clone());
    teams.collect::<Vec<_>>().iter().for_each(|team| look(state, team, now, out));
}

pub(super) fn next_due(state: &State) -> impl Iterator<Item = u64> {
    state.teams.values().filter_map(|known| known.spent_at)
}

pub(super) fn is_spent(state: &State, team: &TeamName) -> bool {
    state.teams.get(team).is_some_and(|known| known.spent.why.is_some())
}

/// Why nobody can be started for it.
pub(super) fn refusal(state: &State, team: &TeamName) -> Option<Fault> {
    let why = state.teams.get(team)?.spent.why.as_ref()?;
    let message = format!("cannot start anybody for {team}: {why}");
    Some(Fault::new(Kind::Refused, message).hinted("give it more with: teamctl policy FILE"))
}

/// For `status`; nothing of a team without limits.
pub(super) fn told(known: &Team) -> Option<Budget> {
    let (turns, time_ms) = (known.policy.turns, known.policy.time_ms);
    let spent = &known.spent;
    (turns.is_some() || time_ms.is_some()).then(|| Budget {
        turns: spent.turns,
        of_turns: turns,
        since: spent.since,
        of_ms: time_ms,
        spent: spent.why.clone(),
    })
}

fn why(known: &Team, left_ms: Option<u64>) -> Option<String> {
    match known.policy.turns.filter(|most| known.spent.turns >= *most) {
        Some(most) => Some(format!("its budget of {most} turns is used up")),
        None => (left_ms == Some(0)).then(|| "its time is used up".to_owned()),
    }
}

/// Of its time; none where that has no limit.
fn left_ms(known: &Team, now: Now) -> Option<u64> {
    Some(known.policy.time_ms?.saturating_sub(now.wall.saturating_sub(known.spent.since)))
}
