//! At the annex: stores the config of the home, whole or as a change.

use crate::config_changes::{ConfigAfterChange, HomeConfig};
use crate::members::create_mirror;
use crate::mirror::Mirror;
use crate::output::MirrorNotice;
use crate::take_team::HomeOfTeam;
use protocol::annex_link::{ConfigChange, ConfigForAnnex, ItemPayload};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use protocol::team_config::ConfigError;
use protocol::team_home::{HomeState, TeamHome};
use store::Error;

impl Mirror {
    /// Makes the mirror, or updates the members that run elsewhere.
    pub(crate) fn store_config_of_home(
        &mut self,
        team: &TeamName,
        config: &ConfigForAnnex,
        (version, epoch): (u64, u64),
    ) -> Result<(), ErrorReport> {
        let config = config.to_config().map_err(|error| cannot_mirror_error(team, &error))?;
        if self.decide_home(team, config.created_at, epoch)? == HomeOfTeam::Here {
            return Ok(self.send_taken_teams()?);
        }
        match self.root.team(team) {
            Ok(_) if self.teams.ended.contains(team) => return Err(being_deleted_error(team)),
            Ok(existing) if existing.is_mirror() && self.is_own(&existing)? => {
                if self.created_at(&existing)? != config.created_at {
                    // A program has replaced the team at the home.
                    self.end_team(team)?;
                    return Err(being_deleted_error(team));
                }
                self.mirror(team)?.store_config(&config)?;
            }
            Ok(_) if self.is_of_earlier_link(team)? => return Err(being_deleted_error(team)),
            Ok(existing) if self.has_moved_from_here(&existing, config.created_at, epoch)? => {
                self.become_annex(&existing, &config, epoch)?;
                self.mirror(team)?.store_config(&config)?;
            }
            Ok(existing) if self.is_mirror_of_earlier_home(&existing, config.created_at, epoch)? => {
                self.notify(MirrorNotice::HomeReplaced { team: team.clone() });
                return Err(being_deleted_error(team));
            }
            Ok(existing) if self.is_outdated_home(&existing, config.created_at, epoch)? => {
                self.note_replaced_by_sender(&existing, config.created_at, epoch)?;
                self.become_annex(&existing, &config, epoch)?;
                self.mirror(team)?.store_config(&config)?;
            }
            Ok(existing) => return Ok(self.refuse_config(&existing, config.created_at, epoch)?),
            // The earlier link still has to forget the deleted mirror.
            Err(Error::NoSuchTeam { .. }) if self.is_of_earlier_link(team)? => {
                return Err(being_deleted_error(team));
            }
            Err(Error::NoSuchTeam { .. }) => {
                self.forget_team(team)?;
                create_mirror(&self.root, &config, &self.mark(&config))?;
                self.notify(MirrorNotice::TeamMade { team: team.clone() });
            }
            Err(error) => return Err(error.into()),
        }
        self.record_home(team, epoch)?;
        self.teams.add(team, &self.state)?;
        self.mirror(team)?.home_config = Some(HomeConfig { config, version });
        self.wanted.remove(team);
        Ok(())
    }

    /// Records the epoch of the home. If this host was the home before, also reports to the daemon
    /// that the team is a mirror now. The daemon has refused changes of the team since the home
    /// moved away, and allows them after this report.
    fn record_home(&mut self, team: &TeamName, epoch: u64) -> Result<(), Error> {
        let record = self.root.team_home(team)?;
        if record.epoch != epoch {
            self.root.set_team_home(team, &TeamHome::with_epoch(epoch))?;
        }
        if matches!(record.state, HomeState::Moved(_)) {
            self.notify(MirrorNotice::TeamMade { team: team.clone() });
        }
        Ok(())
    }

    /// At the annex: applies a change of the home's config. Asks for the whole config if this host
    /// does not have the version that the change is based on.
    pub(crate) fn store_config_change(
        &mut self,
        team: &TeamName,
        change: &ConfigChange,
    ) -> Result<(), ErrorReport> {
        // The home has deleted the team, so it needs no config.
        if self.teams.ended.contains(team) {
            return Ok(());
        }
        let next = match self.is_mirrored(team)? {
            true => HomeConfig::apply(self.mirror(team)?.home_config.as_ref(), change),
            false => ConfigAfterChange::BaseUnknown,
        };
        match next {
            ConfigAfterChange::Stored => {}
            ConfigAfterChange::Next(next) => {
                let mirror = self.mirror(team)?;
                mirror.store_config(&next.config)?;
                mirror.home_config = Some(next);
            }
            // The home answers with the whole config, so one question is enough.
            ConfigAfterChange::BaseUnknown => {
                if self.wanted.insert(team.clone()) {
                    self.send(ItemPayload::TeamWanted { team: team.clone() });
                }
            }
        }
        Ok(())
    }
}

fn cannot_mirror_error(team: &TeamName, reason: &ConfigError) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, format!("cannot mirror {team}: {reason}"))
}

fn being_deleted_error(team: &TeamName) -> ErrorReport {
    ErrorReport::new(
        ErrorKind::Refused,
        format!("cannot mirror {team} yet: its last mirror is being deleted"),
    )
}
