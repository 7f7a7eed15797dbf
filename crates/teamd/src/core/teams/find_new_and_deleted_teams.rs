//! Compares the list of all teams in the root with the teams that the daemon knows.

use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_watcher_command::WatchPurpose;
use crate::core::schedule_scans::schedule_task_scan;
use crate::core::state::team::WatchedTeam;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::tasks::answer_next_task_queries;
use crate::core::watch_team_directories::request_watches;
use protocol::team_and_member_names::TeamName;

/// Handles the list of all teams in the root. Another program may have created some of them.
pub(crate) fn handle_teams_listed(context: &mut Context, teams: Vec<TeamName>) {
    let (sessions, others): (Vec<TeamName>, Vec<TeamName>) =
        teams.into_iter().partition(TeamName::is_claude_session);
    let unknown = others.into_iter().filter(|team| !context.state.teams.contains_key(team));
    let find = |team| Effect::File(FileJob::FindTeam { team, waiting: None });
    context.effects.extend(unknown.map(find).collect::<Vec<_>>());
    update_session_teams(context, &sessions);
}

/// Updates the session teams. `existing` are the ones that exist now.
fn update_session_teams(context: &mut Context, existing: &[TeamName]) {
    let deleted: Vec<TeamName> =
        context.state.session_teams.keys().filter(|team| !existing.contains(team)).cloned().collect();
    for team in deleted {
        answer_next_task_queries::drop_team_queries(context, &team);
        context.state.session_teams.remove(&team);
        context.effects.push(Effect::UnwatchTeam { team });
    }
    let mut is_new = false;
    for team in existing {
        if !context.state.session_teams.contains_key(team) {
            let cursor = &mut context.state.previous_cursor;
            let watched = WatchedTeam::with_logged_state(cursor, team);
            context.state.session_teams.insert(team.clone(), watched);
            schedule_task_scan(context, team);
            is_new = true;
        }
    }
    if is_new {
        // Messages may have come before the directory was watched.
        request_watches(context, WatchPurpose::Scan);
    }
}
