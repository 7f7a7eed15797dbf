//! Handles the result of a scan of config.json.

use crate::core::effect::Effect;
use crate::core::jobs::file_results::ConfigSnapshot;
use crate::core::members::{cleanup_after_exit, set_permission_mode};
use crate::core::schedule_scans::{schedule_config_scan, schedule_request_scan};
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::turns::apply_reported_turns_and_activity;
use protocol::event_log_line::EventKind;
use protocol::team_and_member_names::TeamName;

/// Handles the result of a scan of config.json. If the scan has repaired a damaged file, the daemon
/// again tries to remove members that have exited: the damage may have prevented that.
pub(crate) fn handle_config_checked(context: &mut Context, team: &TeamName, snapshot: ConfigSnapshot) {
    let is_rescan_needed =
        context.state.teams.get_mut(team).is_some_and(|team_state| team_state.config_scan.finish());
    for (name, activity) in apply_reported_turns_and_activity::take_config_activity_changes(
        context.state,
        team,
        &snapshot.activities,
    ) {
        if snapshot.repaired.is_none() {
            apply_reported_turns_and_activity::apply_native_activity(context, team, &name, activity);
        }
    }
    if snapshot.has_restored_members || snapshot.repaired.is_some() {
        // A scan for requests ignores members that are missing in config.json. The scan of
        // config.json may have restored members, so their requests must be scanned now.
        schedule_request_scan(context, team);
    }
    set_permission_mode::store_config_modes(context.state, team, &snapshot.modes);
    if let Some(reason) = snapshot.repaired {
        context.effects.push(Effect::log_team(team, EventKind::Error { message: reason }));
        cleanup_after_exit::save_roster_and_retry_cleanups(context);
    }
    if is_rescan_needed {
        schedule_config_scan(context, team);
    }
}
