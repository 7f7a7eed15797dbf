//! After a start: every agent of the roster is adopted as soon as its join reconnects. What ended meanwhile
//! is told by the pidfd; what was half put in order is put in order again.

use crate::core::clock::Now;
use crate::core::effect::Effect;
use crate::core::id::SpawnId;
use crate::core::jobs::files::FileJob;
use crate::core::members::{cleanup, exit, restart_policy, shutdown};
use crate::core::rescan;
use crate::core::scans::schedule_config_scan;
use crate::core::state::agent::LeadSession;
use crate::core::state::daemon::State;
use crate::core::teams::budget;
use protocol::name::TeamName;

/// The effects of a start with this roster.
pub(crate) fn recover(state: &mut State, now: Now) -> Vec<Effect> {
    let mut effects = Vec::new();
    let out = &mut effects;
    restart_policy::restore_deadlines(state, now);
    let teams: Vec<TeamName> = state.teams.keys().cloned().collect();
    for team in &teams {
        set_missing_start_time(state, team, now);
        budget::check(state, team, now, out);
    }
    let ids: Vec<SpawnId> = state.agents.keys().cloned().collect();
    for id in &ids {
        recover_agent(state, id, now, out);
    }
    // One that is missing sends no event.
    teams.iter().for_each(|team| schedule_config_scan(state, team, out));
    out.extend(state.lead_sessions.values().map(LeadSession::watch_effect));
    // A daemon that was killed may have known a session, and not written it.
    let sessions = state
        .lead_sessions
        .iter()
        .filter_map(|(team, leading)| Some((team, leading.lead.session_id.as_ref()?)));
    let written = |(team, session): (&TeamName, &String)| FileJob::WriteLeadSession {
        team: team.clone(),
        session: session.clone(),
    };
    out.extend(sessions.map(written).map(Effect::File));
    rescan::rescan_all(state, now, out);
    // With what was taken in or let go; and nobody is asked to end before it has the question.
    state.has_roster_changed = false;
    effects.insert(0, Effect::File(FileJob::SaveRoster(state.to_roster())));
    effects
}

/// Of a team that an earlier release, or another program, has made the time begins now.
fn set_missing_start_time(state: &mut State, team: &TeamName, now: Now) {
    let known = state.teams.get_mut(team).filter(|known| known.usage.started_at == 0);
    known.into_iter().for_each(|known| known.usage.started_at = now.wall);
}

fn recover_agent(state: &mut State, id: &SpawnId, now: Now, out: &mut Vec<Effect>) {
    let Some(agent) = state.agents.get_mut(id) else { return };
    shutdown::recover_shutdown(agent, now, out);
    if let (None, Some(how)) = (&agent.record.exit, agent.record.exit_report.clone()) {
        return exit::handle_exit_report(state, id, how, now, out);
    }
    match (&agent.record.exit, agent.record.shim) {
        (Some(_), _) => cleanup::start_cleanup(state, id, out),
        (None, Some(process)) => out.push(Effect::WatchProcess { spawn: id.clone(), process }),
        (None, None) => {
            let token = agent.record.token.clone();
            out.push(Effect::File(FileJob::ReadExitReport { spawn: id.clone(), token }));
        }
    }
}
