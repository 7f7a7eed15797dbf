//! Creates and deletes teams.

use crate::core::jobs::file_jobs::TeamCreation;
use crate::core::state::call_errors::has_unsupervised_members_error;
use crate::io::files::files_thread::FilesThread;
use crate::io::files::root_and_saves_shared_by_threads::lock;
use protocol::control_socket::{CreateTeamReply, CreateTeamRequest, DeleteTeamRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::AgentId;
use protocol::state_file_names;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig};
use store::{Error, StateDir, Team};

impl FilesThread {
    /// Creates a team. Fails if the name is taken.
    pub(super) fn create(&mut self, creation: &TeamCreation) -> Result<CreateTeamReply, Error> {
        let name = &creation.name;
        lock(&self.shared.creating).insert(name.clone());
        let result = self.write_new_team(&creation.request, name, creation.created_at);
        lock(&self.shared.creating).remove(name);
        let team_file_path = result?.path().join("config.json");
        // Forgets the handle and the inbox scans of an earlier team with the same name.
        self.teams.remove(name);
        self.inboxes.forget_team(name);
        let record = creation.request.record.then(|| self.reserve_record(name, creation.created_at));
        let lead_agent_id = AgentId { name: MemberName::lead(), team: name.clone() }.to_string();
        Ok(CreateTeamReply { team_file_path, team_name: name.clone(), lead_agent_id, record })
    }

    /// Writes the files of a new team. `at` is the creation time in milliseconds since the epoch.
    ///
    /// The policy and the backup of config.json are written before the team, so that no team exists
    /// without them. The files of an existing team are not changed.
    fn write_new_team(&self, request: &CreateTeamRequest, name: &TeamName, at: u64) -> Result<Team, Error> {
        if self.root.team(name).is_ok() {
            return Err(Error::AlreadyExists { what: format!("team {name}") });
        }
        self.write_policy(name, &request.policy)?;
        let config = initial_config(request, name, at);
        self.save_backup(name, &config.to_text())?;
        self.root.create_team(&config)
    }

    /// Returns the error with which [`FilesThread::delete`] would refuse to delete the team.
    /// Changes nothing.
    pub(super) fn check_deletable(&self, request: &DeleteTeamRequest) -> Result<(), ErrorReport> {
        self.open_deletable(request)?.check_deletable().map_err(ErrorReport::from)
    }

    /// Opens a team that is about to be deleted. The team need not have a config.json, because a
    /// crash may have interrupted an earlier deletion.
    ///
    /// # Errors
    ///
    /// If config.json still has members besides the lead, and the request has no `force`. Such
    /// members may run, because another program added them.
    fn open_deletable(&self, request: &DeleteTeamRequest) -> Result<Team, ErrorReport> {
        let Some(team) = self.root.open_team_without_config(&request.team)? else {
            return self.root.team(&request.team).map_err(ErrorReport::from);
        };
        let config = match (!request.force).then(|| team.as_repairer().cached_config()) {
            None | Some(Err(Error::NoSuchTeam { .. })) => None,
            Some(config) => Some(config?),
        };
        let members = config.iter().flat_map(|config| &config.members);
        let member_names: Vec<String> =
            members.filter(|member| !member.name.is_lead()).map(|member| member.name.to_string()).collect();
        if !member_names.is_empty() {
            return Err(has_unsupervised_members_error(&request.team, &member_names));
        }
        Ok(team)
    }

    /// Deletes the files of a team.
    pub(super) fn delete(&mut self, request: &DeleteTeamRequest) -> Result<(), ErrorReport> {
        // The roster on disk must have the deletion, so that the next daemon completes it.
        self.check_saved()?;
        let (name, team) = (&request.team, self.open_deletable(request)?);
        team.delete().map_err(ErrorReport::from)?;
        self.teams.remove(name);
        self.inboxes.forget_team(name);
        self.log_error("forget a team", remove_team_files(&self.state, name));
        Ok(())
    }

    /// Does the work of [`remove_team_files`] for teams whose deletion was interrupted. Such a team
    /// has files in the state directory, but no directory of its own, and is not in `known_teams`.
    pub(super) fn remove_orphaned_files(&self, known_teams: &[TeamName]) -> Result<(), Error> {
        for file in self.state.names()? {
            let Some(team) = state_file_names::team_of_removable_file(&file) else { continue };
            let exists = || !matches!(self.root.team(&team), Err(Error::NoSuchTeam { .. }));
            // While this lock is held, no thread of another lane can begin to create the team.
            let creating = lock(&self.shared.creating);
            if !known_teams.contains(&team) && !creating.contains(&team) && !exists() {
                self.state.remove(&file)?;
            }
        }
        Ok(())
    }
}

/// Removes the files of a deleted team from the state directory: the policy, the backup of
/// config.json, and the list of branches that were fetched from other hosts.
pub(crate) fn remove_team_files(state: &StateDir, name: &TeamName) -> Result<(), Error> {
    state
        .remove(&state_file_names::policy(name))
        .and(state.remove(&state_file_names::config_backup(name)))
        .and(state.remove(&state_file_names::branches_of_hosts(name)))
}

/// The config of a new team, with the lead as its only member.
fn initial_config(request: &CreateTeamRequest, name: &TeamName, at: u64) -> TeamConfig {
    let model = request.model.clone().unwrap_or_default();
    let cwd = request.cwd.to_string_lossy().into_owned();
    let mut lead = Member::lead(name, request.agent_type.clone(), model, cwd, at);
    lead.mode = request.lead_mode.map(|mode| mode.to_string());
    TeamConfig {
        name: name.to_string(),
        description: request.description.clone(),
        created_at: at,
        lead_agent_id: lead.agent_id.clone(),
        lead_session_id: uuid::Uuid::new_v4().to_string(),
        members: vec![lead],
        hidden_pane_ids: Vec::new(),
    }
}
