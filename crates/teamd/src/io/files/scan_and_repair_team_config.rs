//! Scans and repairs a team's config.json. Restores what other programs have removed or damaged,
//! and reports the activities and permission modes that members with native delivery have written.
//!
//! For each team that the daemon created, the state directory has a config backup. It is a copy of
//! the last valid config.json without the members that are in the roster. A damaged config.json is
//! rebuilt from the backup and the roster. A team without a config backup was created by another
//! program, and its config.json is not repaired.

use crate::core::jobs::file_jobs::{RegisteredMember, RosterMembers};
use crate::core::jobs::file_results::ConfigSnapshot;
use crate::io::files::files_thread::FilesThread;
use crate::io::files::prepare_and_finish_registration::to_config_member;
use protocol::state_file_names;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig, with_member, without_members};
use std::collections::HashSet;
use std::sync::Arc;
use store::{CachedConfig, ConfigDamage, Error, Team};

/// Number of recently deregistered members that the files thread remembers. Another program may
/// read config.json before a deregistration and write the whole file after it. The deregistered
/// member is then in config.json again, and the next scan removes it.
const MAX_DEREGISTERED: usize = 64;

impl FilesThread {
    /// Reads the config.json of a team, and repairs it if it is damaged or lacks members. `roster`
    /// has the team's members according to the roster.
    ///
    /// # Errors
    ///
    /// If config.json is damaged and cannot be repaired.
    pub(super) fn check_config(
        &mut self,
        name: &TeamName,
        roster: &RosterMembers,
    ) -> Result<ConfigSnapshot, Error> {
        let (mut config, repaired) = self.read_or_repair(name, &roster.registered)?;
        let team = self.open_team(name)?;
        if self.remove_deregistered(&team, &config)? {
            // The entry that was removed may have replaced the entry of a running member with the
            // same name. `restore_members` needs the config without the removed entry, to see that
            // the running member is missing.
            config = team.as_repairer().cached_config()?;
        }
        let has_restored_members = restore_members(&team, &config, &roster.registered)?;
        if has_restored_members {
            config = team.as_repairer().cached_config()?;
        }
        self.update_backup(name, &config, &roster.all_names);
        let activities = config
            .members
            .iter()
            .filter_map(|member| Some((member.name.clone(), member.is_active?)))
            .collect();
        let modes = config
            .members
            .iter()
            .filter_map(|member| Some((member.name.clone(), member.mode.clone()?)))
            .collect();
        Ok(ConfigSnapshot { activities, modes, repaired, has_restored_members })
    }

    /// Reads config.json. If the file is damaged, repairs it and also returns the reason for the
    /// repair.
    fn read_or_repair(
        &mut self,
        name: &TeamName,
        registered: &[RegisteredMember],
    ) -> Result<(Arc<CachedConfig>, Option<String>), Error> {
        let config = self.open_team(name).and_then(|team| team.as_repairer().cached_config());
        if let Ok(config) = config {
            return Ok((config, None));
        }
        let repaired = self.repair(name, registered)?;
        Ok((self.open_team(name)?.as_repairer().cached_config()?, repaired))
    }

    /// Rebuilds a damaged config.json from the config backup and the members `registered`. Returns
    /// the reason for the repair as a sentence for people, or `None` if config.json is valid or the
    /// team has no config backup.
    fn repair(&self, name: &TeamName, registered: &[RegisteredMember]) -> Result<Option<String>, Error> {
        let Some(backup) = self.read_backup(name) else { return Ok(None) };
        let Some(team) = self.root.open_team_without_config(name)? else { return Ok(None) };
        let add_member = |text: String, member: &RegisteredMember| {
            with_member(&text, &to_config_member(&member.record, member.activity)).unwrap_or(text)
        };
        let damage = team.repair_config(|| registered.iter().fold(backup.clone(), add_member))?;
        Ok(damage.map(|ConfigDamage { reason, backup: copy }| {
            let copy = copy.map(|copy| format!("; what it said: {}", copy.display())).unwrap_or_default();
            format!("config.json is written anew from the roster: {reason}{copy}")
        }))
    }

    /// Removes deregistered members that another program has written back to config.json. Returns
    /// whether there were any.
    ///
    /// A deregistered member is identified by its name and the time of its spawn, so a new member
    /// with the same name is not removed.
    fn remove_deregistered(&self, team: &Team, config: &TeamConfig) -> Result<bool, Error> {
        let mut has_removed = false;
        for (_, name, spawned_at) in self.deregistered.iter().filter(|(other, ..)| other == team.name()) {
            if config.member(name).is_some_and(|member| member.joined_at == *spawned_at) {
                tracing::warn!(member = %name, "config.json has an exited member again: removing it");
                team.remove_member(name)?;
                has_removed = true;
            }
        }
        Ok(has_removed)
    }

    /// Remembers a deregistered member. `spawned_at` is in milliseconds since the epoch.
    pub(super) fn remember_deregistered(&mut self, team: &TeamName, name: &MemberName, spawned_at: u64) {
        let member = (team.clone(), name.clone(), spawned_at);
        if self.deregistered.contains(&member) {
            return;
        }
        self.deregistered.push_back(member);
        if self.deregistered.len() > MAX_DEREGISTERED {
            self.deregistered.pop_front();
        }
    }

    /// Writes the config backup of a team. `text` is a config without members of the roster.
    pub(super) fn save_backup(&self, name: &TeamName, text: &str) -> Result<(), Error> {
        self.state.replace(&state_file_names::config_backup(name), text.as_bytes())
    }

    /// Reads the config backup of a team. `None` if there is none or it cannot be read.
    pub(super) fn read_backup(&self, name: &TeamName) -> Option<String> {
        let read = self.state.read(&state_file_names::config_backup(name)).unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        });
        read.and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// Writes `config` as the new config backup of the team `name`, without the members
    /// `roster_names`.
    ///
    /// Does nothing if the team has no backup: teamd did not create this team. A backup of an
    /// earlier team with the same name is removed.
    fn update_backup(&mut self, name: &TeamName, config: &CachedConfig, roster_names: &[MemberName]) {
        if self.config_backups.get(name) == Some(&config.base_version()) {
            return;
        }
        let Some(old_backup) = self.read_backup(name) else { return };
        let created_at = |text: &str| TeamConfig::parse(text).ok().map(|config| config.created_at);
        if created_at(&old_backup) != Some(config.created_at) {
            self.log_error(
                "forget another team of that name",
                self.state.remove(&state_file_names::config_backup(name)),
            );
            return;
        }
        let Ok(backup) = without_members(config.text(), roster_names) else { return };
        let saved = if backup == old_backup { Ok(()) } else { self.save_backup(name, &backup) };
        if self.log_error("save a config backup", saved).is_some() {
            self.config_backups.insert(name.clone(), config.base_version());
        }
    }
}

/// Adds the registered members that are missing in config.json. Returns whether there were any.
fn restore_members(team: &Team, config: &TeamConfig, registered: &[RegisteredMember]) -> Result<bool, Error> {
    let present: HashSet<&MemberName> = config.members.iter().map(|member| &member.name).collect();
    let missing: Vec<Member> = registered
        .iter()
        .filter(|member| !present.contains(&member.record.request.name))
        .map(|member| to_config_member(&member.record, member.activity))
        .collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let restored = team.add_missing_members(&missing)?;
    for member in &restored {
        tracing::warn!(%member, "config.json lacked a running member: restored it");
    }
    Ok(!restored.is_empty())
}
