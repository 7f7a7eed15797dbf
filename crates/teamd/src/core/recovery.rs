//! Recovery: what the daemon does first after its start. Every agent in the roster is adopted once
//! its shim reconnects. If an agent exited while no daemon ran, the process watcher reports that
//! its shim has exited. Cleanups that the last daemon did not finish start again.

use crate::core::connection_spawn_and_watch_ids::{SpawnId, WatchId};
use crate::core::dispatch_core_events::run_follow_ups;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::hosts::{handle_host_events, lease, send_logged_events, take_home};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::members::{
    cleanup_after_exit, decide_respawns_and_suspensions, record_exit_and_decide_respawn, shutdown_requests,
};
use crate::core::rescan_files;
use crate::core::schedule_scans::schedule_config_scan;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::state::core_state::State;
use crate::core::state::lead_session::LeadSession;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::team_records::record_events_and_outputs;
use crate::core::teams::{budget, delete};
use protocol::team_and_member_names::TeamName;

/// Recovers from the roster. Returns the effects of the start.
pub(crate) fn recover(state: &mut State, now: Now) -> Vec<Effect> {
    let mut context = Context::new(state, now);
    recover_all(&mut context);
    send_logged_events::send_logged_events(&mut context);
    record_events_and_outputs::record_effects(&mut context);
    context.effects.into_vec()
}

fn recover_all(context: &mut Context) {
    decide_respawns_and_suspensions::restore_deadlines(context.state, context.now);
    // First, `recover_shutdown` continues the shutdowns that the last daemon began. The check of
    // the budgets comes after it, because the check may request new shutdowns.
    for agent in context.state.agents.values_mut() {
        shutdown_requests::recover_shutdown(agent, context.now, &mut context.effects);
    }
    let teams: Vec<TeamName> = context.state.teams.keys().cloned().collect();
    for team in &teams {
        budget::check(context, team);
    }
    let ids: Vec<SpawnId> = context.state.agents.keys().cloned().collect();
    for id in &ids {
        recover_agent(context, id);
    }
    lease::begin_leases(context);
    delete::resume_deletions(context);
    handle_host_events::remove_mirrors_of_deleted_teams(context);
    take_home::end_members_of_moved_teams(context);
    run_follow_ups(context);
    // A missing config.json causes no file event, so each config.json is scanned now.
    teams.iter().for_each(|team| schedule_config_scan(context, team));
    context.effects.extend(context.state.lead_sessions.values().map(LeadSession::watch_effect));
    // The last daemon may have died before it wrote a session id to config.json.
    let sessions = context
        .state
        .lead_sessions
        .iter()
        .filter_map(|(team, lead_session)| Some((team, lead_session.lead.session_id.as_ref()?)));
    let write_job = |(team, session): (&TeamName, &String)| FileJob::WriteLeadSession {
        team: team.clone(),
        session: session.clone(),
    };
    context.effects.extend(sessions.map(write_job).map(Effect::File));
    rescan_files::rescan_all(context);
    // The roster is saved before all other effects run, because it must have the shutdown requests
    // and teams that these effects are about.
    context.state.has_roster_changed = false;
    context.effects.insert_first(Effect::File(FileJob::SaveRoster(context.state.to_roster())));
}

fn recover_agent(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get(id) else { return };
    let lifecycle = &agent.record.lifecycle;
    if let Lifecycle::Exited(exited) = lifecycle {
        let exit = exited.exit.clone();
        return cleanup_after_exit::start_cleanup(context, id, exit);
    }
    if let Some(report) = lifecycle.process().exit_report.clone() {
        return record_exit_and_decide_respawn::handle_exit_report(context, id, report);
    }
    match lifecycle.process().shim {
        Some(process) => {
            context.effects.push(Effect::WatchProcess { watch: WatchId::Shim(id.clone()), process });
        }
        None => {
            let token = agent.record.token.clone();
            context.effects.push(Effect::File(FileJob::ReadExitReport { spawn: id.clone(), token }));
        }
    }
}
