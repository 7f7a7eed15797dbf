//! After a start: every agent of the roster is adopted as soon as its join reconnects. What ended meanwhile
//! is told by the pidfd; what was half put in order is put in order again.

use super::{again, budget, ending, look, shutdown};
use crate::effect::Effect;
use crate::event::Now;
use crate::files::FileJob;
use crate::roster::SpawnId;
use crate::state::{Leading, State};
use protocol::name::TeamName;

/// The effects of a start with this roster.
pub(crate) fn restart(state: &mut State, now: Now) -> Vec<Effect> {
    let mut effects = Vec::new();
    let out = &mut effects;
    again::recalled(state, now);
    let teams: Vec<TeamName> = state.teams.keys().cloned().collect();
    for team in &teams {
        since_when(state, team, now);
        budget::look(state, team, now, out);
    }
    let ids: Vec<SpawnId> = state.agents.keys().cloned().collect();
    for id in &ids {
        take_up(state, id, now, out);
    }
    // One that is missing sends no event.
    teams.iter().for_each(|team| look::config(state, team, out));
    out.extend(state.leads.values().map(Leading::watched));
    // A daemon that was killed may have known a session, and not written it.
    let sessions =
        state.leads.iter().filter_map(|(team, leading)| Some((team, leading.lead.session_id.as_ref()?)));
    let written = |(team, session): (&TeamName, &String)| FileJob::LeadSession {
        team: team.clone(),
        session: session.clone(),
    };
    out.extend(sessions.map(written).map(Effect::File));
    look::everywhere(state, now, out);
    // With what was taken in or let go; and nobody is asked to end before it has the question.
    state.dirty = false;
    effects.insert(0, Effect::File(FileJob::Roster(state.roster())));
    effects
}

/// Of a team that an earlier release, or another program, has made the time begins now.
fn since_when(state: &mut State, team: &TeamName, now: Now) {
    let known = state.teams.get_mut(team).filter(|known| known.spent.since == 0);
    known.into_iter().for_each(|known| known.spent.since = now.wall);
}

fn take_up(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    shutdown::resume(agent, now, out);
    if let (None, Some(how)) = (&agent.record.ended, agent.record.reported.clone()) {
        return ending::reported(state, id, how, now, out);
    }
    match (&agent.record.ended, agent.record.join) {
        (Some(_), _) => ending::put_away(state, id, out),
        (None, Some(process)) => out.push(Effect::Watch { spawn: id.clone(), process }),
        (None, None) => {
            let token = agent.record.token.clone();
            out.push(Effect::File(FileJob::LastWords { spawn: id.clone(), token }));
        }
    }
}
