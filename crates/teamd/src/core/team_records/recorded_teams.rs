//! Which teams are recorded, and where. Adds lines to their records.

use crate::core::state::core_state::State;
use crate::core::state::team_record::TeamRecord;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::state_file_names::RECORDS_DIR;
use protocol::team_and_member_names::TeamName;
use protocol::team_record_line::RecordEntry;
use std::path::PathBuf;

/// Whether a team is recorded.
pub(crate) fn is_recorded(state: &State, team: &TeamName) -> bool {
    state.team_records.get(team).is_some_and(TeamRecord::is_open)
}

/// The path of the record of a team. `None` if the team is not recorded.
pub(crate) fn record_path(state: &State, team: &TeamName) -> Option<PathBuf> {
    let record = state.team_records.get(team).filter(|record| record.is_open())?;
    Some(state.settings.state_dir.join(RECORDS_DIR).join(&record.file))
}

/// Adds a line to the record of a team. Does nothing if the team is not recorded.
pub(super) fn add_entry(context: &mut Context, team: &TeamName, entry: RecordEntry) {
    if is_recorded(context.state, team) {
        context.record_items.push((team.clone(), entry.into()));
    }
}
