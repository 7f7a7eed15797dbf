//! Writes the policies of teams to the state directory, and the ids of hidden panes to config.json.

use crate::io::files::files_thread::FilesThread;
use protocol::policy::Policy;
use protocol::state_file_names;
use protocol::team_and_member_names::TeamName;
use store::Error;

impl FilesThread {
    /// Writes the policy of an existing team.
    pub(super) fn replace_policy(&self, name: &TeamName, policy: &Policy) -> Result<(), Error> {
        self.root.team(name)?;
        self.write_policy(name, policy)
    }

    /// Writes the policy of a team to the state directory. If an earlier team had the same name,
    /// its policy is replaced.
    pub(super) fn write_policy(&self, name: &TeamName, policy: &Policy) -> Result<(), Error> {
        let bytes = serde_json::to_vec(policy).expect("a policy has nothing that JSON cannot hold");
        self.state.replace(&state_file_names::policy(name), &bytes)
    }

    /// Writes the ids of hidden panes to config.json, if they have changed.
    pub(super) fn write_hidden_panes(&mut self, name: &TeamName, panes: &[String]) -> Result<(), Error> {
        let team = match self.open_team(name) {
            Err(Error::NoSuchTeam { .. }) if panes.is_empty() => return Ok(()),
            team => team?,
        };
        if team.as_repairer().cached_config()?.hidden_pane_ids == panes {
            return Ok(());
        }
        let value = if panes.is_empty() { serde_json::Value::Null } else { serde_json::json!(panes) };
        team.set_fields(&[("hiddenPaneIds", value)])
    }
}
