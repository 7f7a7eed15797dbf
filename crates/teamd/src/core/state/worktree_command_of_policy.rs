//! Looks up the commands `setup` and `teardown` in the policy of a team.

use crate::core::jobs::worktree_jobs::PolicyCommand;
use crate::core::state::core_state::State;
use protocol::policy::WorktreeCommandKind;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeMap;

/// The command `setup` or `teardown` of the team's policy, with the environment variables
/// `variables`. `None` if the policy has no command of this kind.
pub(crate) fn worktree_command_of_policy(
    state: &State,
    team: &TeamName,
    kind: WorktreeCommandKind,
    variables: &BTreeMap<String, String>,
) -> Option<PolicyCommand> {
    let mut commands = state.teams.get(team)?.policy.worktree_commands();
    let (_, command) = commands.find(|(other, _)| *other == kind)?;
    Some(PolicyCommand {
        kind,
        command: command.clone(),
        team: team.clone(),
        root: state.settings.root.clone(),
        state_dir: state.settings.state_dir.clone(),
        variables: variables.clone(),
    })
}
