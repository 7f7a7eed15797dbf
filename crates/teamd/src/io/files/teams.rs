//! Teams, made and removed.

use crate::core::state::lookup::has_members_error;
use crate::io::files::config_scan::backup_file;
use crate::io::files::thread::FilesThread;
use protocol::control::{CreateTeamReply, CreateTeamRequest};
use protocol::error::ErrorReport;
use protocol::id::AgentId;
use protocol::name::{AgentName, TeamName};
use protocol::policy::Policy;
use protocol::team_config::{Member, TeamConfig};
use store::{Error, StateDir, Team};

/// So many names are tried where any will do.
const MAX_NAME_ATTEMPTS: u32 = 1_000;

impl FilesThread {
    pub(super) fn create(&mut self, create: &CreateTeamRequest, at: u64) -> Result<CreateTeamReply, Error> {
        let mut wanted = create.team.clone();
        for n in 2.. {
            match self.try_create(create, &wanted, at) {
                Err(Error::AlreadyExists { .. }) if create.unique && n < MAX_NAME_ATTEMPTS => {
                    wanted = numbered_name(&create.team, n)?;
                }
                Err(error) => return Err(error),
                Ok(team) => {
                    // Whatever is remembered of an earlier team of that name.
                    self.teams.remove(&wanted);
                    self.inboxes.forget_team(&wanted);
                    let lead_agent_id = AgentId { name: AgentName::lead(), team: wanted.clone() }.to_string();
                    return Ok(CreateTeamReply {
                        team_file_path: team.path().join("config.json"),
                        team_name: wanted,
                        lead_agent_id,
                    });
                }
            }
        }
        unreachable!("the last try returns")
    }

    /// The policy and the face first, so that no team stands without its own; of one that is there nothing is touched.
    fn try_create(&self, create: &CreateTeamRequest, name: &TeamName, at: u64) -> Result<Team, Error> {
        if self.root.team(name).is_ok() {
            return Err(Error::AlreadyExists { what: format!("team {name}") });
        }
        self.write_policy(name, &create.policy)?;
        let config = initial_config(create, name, at);
        self.save_backup(name, &config.to_text())?;
        self.root.create_team(&config)
    }

    /// Of a team that is there: one that has gone leaves no file.
    pub(super) fn replace_policy(&self, name: &TeamName, policy: &Policy) -> Result<(), Error> {
        self.root.team(name)?;
        self.write_policy(name, policy)
    }

    /// Whether `Files::delete` would say no, with nothing touched.
    pub(super) fn check_deletable(&self, name: &TeamName, force: bool) -> Result<(), ErrorReport> {
        self.open_deletable(name, force)?.check_deletable().map_err(ErrorReport::from)
    }

    /// Members that somebody else has put there may live, for all that we know.
    fn open_deletable(&self, name: &TeamName, force: bool) -> Result<Team, ErrorReport> {
        let team = self.root.team(name).map_err(ErrorReport::from)?;
        let config =
            (!force).then(|| team.as_repairer().cached_config()).transpose().map_err(ErrorReport::from)?;
        let members = config.iter().flat_map(|config| &config.members);
        let others: Vec<String> = members.filter(|m| !m.name.is_lead()).map(|m| m.name.to_string()).collect();
        if !others.is_empty() {
            return Err(has_members_error(name, &others));
        }
        Ok(team)
    }

    pub(super) fn delete(&mut self, name: &TeamName, force: bool) -> Result<(), ErrorReport> {
        let team = self.open_deletable(name, force)?;
        team.delete().map_err(ErrorReport::from)?;
        self.teams.remove(name);
        self.inboxes.forget_team(name);
        self.log_error("forget a team", remove_team_files(&self.state, name));
        Ok(())
    }

    /// What a deletion could not remove: files of ours of a team that is neither known nor there.
    pub(super) fn remove_orphaned_files(&self, known: &[TeamName]) -> Result<(), Error> {
        for file in self.state.names()? {
            let of =
                ["policy-", "config-"].iter().find_map(|of| file.strip_prefix(of)?.strip_suffix(".json"));
            let Some(team) = of.and_then(|of| TeamName::parse(of).ok()) else { continue };
            let is_there = || !matches!(self.root.team(&team), Err(Error::NoSuchTeam { .. }));
            if !known.contains(&team) && !is_there() {
                self.state.remove(&file)?;
            }
        }
        Ok(())
    }

    /// Which panes are hidden, where the file says otherwise.
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

    /// For whoever writes tasks; one of an earlier team of that name goes.
    fn write_policy(&self, name: &TeamName, policy: &Policy) -> Result<(), Error> {
        let bytes = serde_json::to_vec(policy).expect("a policy has nothing that JSON cannot hold");
        self.state.replace(&Policy::file_name(name), &bytes)
    }
}

/// What lies outside of the root of a team that is gone.
pub(crate) fn remove_team_files(state: &StateDir, name: &TeamName) -> Result<(), Error> {
    state.remove(&Policy::file_name(name)).and(state.remove(&backup_file(name)))
}

/// `NAME-n`, the name cut where both would be longer than a name may be.
fn numbered_name(team: &TeamName, n: u32) -> Result<TeamName, Error> {
    let suffix = format!("-{n}");
    let base: String = team.as_str().chars().take(64 - suffix.len()).collect();
    Ok(TeamName::sanitize(&format!("{base}{suffix}"))?)
}

fn initial_config(create: &CreateTeamRequest, name: &TeamName, at: u64) -> TeamConfig {
    let model = create.model.clone().unwrap_or_default();
    let cwd = create.cwd.to_string_lossy().into_owned();
    let mut lead = Member::lead(name, create.agent_type.clone(), model, cwd, at);
    lead.mode = create.lead_mode.map(|mode| mode.to_string());
    TeamConfig {
        name: name.to_string(),
        description: create.description.clone(),
        created_at: at,
        lead_agent_id: lead.agent_id.clone(),
        lead_session_id: uuid::Uuid::new_v4().to_string(),
        members: vec![lead],
        hidden_pane_ids: Vec::new(),
    }
}
