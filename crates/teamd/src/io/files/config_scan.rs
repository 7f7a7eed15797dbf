//! A look at a team's config.json: what others lost or left damaged is put back from the roster, and what clients
//! that write there themselves say of their members goes to the loop.
//!
//! Beside the roster lies the face of each team of ours: its config without our members, as it was last read whole. A
//! damaged config is written anew from the two. Without a face the team is not ours, and is left alone.

use crate::core::jobs::files::{ConfigSnapshot, RegisteredMember, RosterMembers};
use crate::io::files::members::to_config_member;
use crate::io::files::thread::FilesThread;
use protocol::name::{AgentName, TeamName};
use protocol::team_config::{Member, TeamConfig, with_member, without_members};
use std::collections::HashSet;
use std::sync::Arc;
use store::{CachedConfig, ConfigDamage, Error, Team};

/// Members of ours that were taken off and may come back by the hand of an old client, which writes what it read
/// before: so many are remembered.
const MAX_DEREGISTERED: usize = 64;

impl FilesThread {
    pub(super) fn check_config(
        &mut self,
        name: &TeamName,
        ours: &RosterMembers,
    ) -> Result<ConfigSnapshot, Error> {
        let (mut config, mended) = self.read_or_repair(name, &ours.registered)?;
        let team = self.open_team(name)?;
        if self.remove_deregistered(&team, &config)? {
            // A namesake of one of them may be missing.
            config = team.as_repairer().cached_config()?;
        }
        let members_back = restore_members(&team, &config, &ours.registered)?;
        if members_back {
            config = team.as_repairer().cached_config()?;
        }
        self.update_backup(name, &config, &ours.all_names);
        let active = config.members.iter().filter_map(|m| Some((m.name.clone(), m.is_active?))).collect();
        let modes = config.members.iter().filter_map(|m| Some((m.name.clone(), m.mode.clone()?))).collect();
        Ok(ConfigSnapshot { activities: active, modes, repaired: mended, has_restored_members: members_back })
    }

    /// As it is, or made whole: then with why it had to be.
    fn read_or_repair(
        &mut self,
        name: &TeamName,
        living: &[RegisteredMember],
    ) -> Result<(Arc<CachedConfig>, Option<String>), Error> {
        let config = self.open_team(name).and_then(|team| team.as_repairer().cached_config());
        if let Ok(config) = config {
            return Ok((config, None));
        }
        let mended = self.repair(name, living)?;
        Ok((self.open_team(name)?.as_repairer().cached_config()?, mended))
    }

    /// Why it had to be; none where it is whole, or not ours to write.
    fn repair(&self, name: &TeamName, living: &[RegisteredMember]) -> Result<Option<String>, Error> {
        let Some(face) = self.read_backup(name) else { return Ok(None) };
        let Some(team) = self.root.open_team_without_config(name)? else { return Ok(None) };
        let with = |text: String, one: &RegisteredMember| {
            with_member(&text, &to_config_member(&one.record, one.activity)).unwrap_or(text)
        };
        let damage = team.repair_config(|| living.iter().fold(face.clone(), with))?;
        Ok(damage.map(|ConfigDamage { reason: why, backup: copy }| {
            let copy = copy.map(|copy| format!("; what it said: {}", copy.display())).unwrap_or_default();
            format!("config.json is written anew from the roster: {why}{copy}")
        }))
    }

    /// Known by the moment of their birth: a namesake stays. Whether any was there.
    fn remove_deregistered(&self, team: &Team, config: &TeamConfig) -> Result<bool, Error> {
        let mut any = false;
        for (_, name, born) in self.deregistered.iter().filter(|(of, ..)| of == team.name()) {
            if config.member(name).is_some_and(|member| member.joined_at == *born) {
                tracing::warn!(member = %name, "config.json has a member again that has ended: taking it out");
                team.remove_member(name)?;
                any = true;
            }
        }
        Ok(any)
    }

    pub(super) fn remember_deregistered(&mut self, team: &TeamName, name: &AgentName, born: u64) {
        let gone = (team.clone(), name.clone(), born);
        if self.deregistered.contains(&gone) {
            return;
        }
        self.deregistered.push_back(gone);
        if self.deregistered.len() > MAX_DEREGISTERED {
            self.deregistered.pop_front();
        }
    }

    /// For a team that we make.
    pub(super) fn save_backup(&self, name: &TeamName, text: &str) -> Result<(), Error> {
        self.state.replace(&backup_file(name), text.as_bytes())
    }

    pub(super) fn read_backup(&self, name: &TeamName) -> Option<String> {
        let read = self.state.read(&backup_file(name)).unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        });
        read.and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// Its lead, what others have put there, and nothing of ours. That of another team of the same name is dropped.
    fn update_backup(&mut self, name: &TeamName, config: &CachedConfig, ours: &[AgentName]) {
        if self.config_backups.get(name) == Some(&config.origin()) {
            return;
        }
        let Some(known) = self.read_backup(name) else { return };
        let born = |text: &str| TeamConfig::parse(text).ok().map(|config| config.created_at);
        if born(&known) != Some(config.created_at) {
            self.log_error("forget another team of that name", self.state.remove(&backup_file(name)));
            return;
        }
        let Ok(face) = without_members(config.text(), ours) else { return };
        let kept = if face == known { Ok(()) } else { self.save_backup(name, &face) };
        if self.log_error("remember a config", kept).is_some() {
            self.config_backups.insert(name.clone(), config.origin());
        }
    }
}

/// Whether any was missing.
fn restore_members(team: &Team, config: &TeamConfig, living: &[RegisteredMember]) -> Result<bool, Error> {
    let there: HashSet<&AgentName> = config.members.iter().map(|member| &member.name).collect();
    let missing: Vec<Member> = living
        .iter()
        .filter(|one| !there.contains(&one.record.name))
        .map(|one| to_config_member(&one.record, one.activity))
        .collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let back = team.add_missing_members(&missing)?;
    for member in &back {
        tracing::warn!(%member, "config.json had lost a living member: it is put back");
    }
    Ok(!back.is_empty())
}

/// The face of a team, in the state directory.
pub(super) fn backup_file(name: &TeamName) -> String {
    format!("config-{name}.json")
}
