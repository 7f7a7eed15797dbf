//! The budget of a team as its home has told it to this annex. A file keeps it, so that a new daemon
//! of the annex knows it before there is contact.

use protocol::annex_link::HomeBudget;
use protocol::team_and_member_names::TeamName;
use store::{Error, StateDir};

/// Writes the budget of a team.
///
/// # Errors
///
/// `Io`.
pub(crate) fn write_home_budget(state: &StateDir, team: &TeamName, budget: &HomeBudget) -> Result<(), Error> {
    state.replace(&home_budget_file(team), &serde_json::to_vec(budget).expect("a budget has string keys"))
}

/// Reads the budget of a team. A missing or damaged file counts as no budget: the home sends it
/// again.
pub(crate) fn read_home_budget(state: &StateDir, team: &TeamName) -> Result<HomeBudget, Error> {
    let bytes = state.read(&home_budget_file(team))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

/// The name of the file with the budget of a team.
pub(crate) fn home_budget_file(team: &TeamName) -> String {
    format!("{team}.budget")
}
