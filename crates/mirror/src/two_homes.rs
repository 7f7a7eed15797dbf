//! What a host does when it hears of a second home of a team, for example because two hosts have
//! taken a lost home. The home with the lower epoch is replaced, and keeps its files. If both
//! epochs are equal, both homes go on, and people are told to end one of them.

use crate::mirror::Mirror;
use crate::output::MirrorNotice;
use protocol::annex_link::ItemPayload;
use protocol::control_socket::HomeId;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::{HomeNameSource, HomeState, LocalWork, MovedHome, MovingHome, TeamHome};
use std::cmp::Ordering;
use store::{Error, Team, now};

/// The home of a team, as this host has recorded it.
struct RecordedHome {
    /// `None` if it is this host.
    host: Option<HostName>,
    epoch: u64,
}

impl Mirror {
    /// At the annex: a home has sent a team's config, but this host already has a team of this name
    /// that is not that home's mirror. Tells that home why this host can't mirror its team, or
    /// which later home the team has. `epoch` is the sender's epoch.
    pub(crate) fn refuse_config(
        &mut self,
        existing: &Team,
        created_at: u64,
        epoch: u64,
    ) -> Result<(), Error> {
        let team = existing.name();
        if self.created_at(existing)? != created_at {
            self.send_refusal(team, created_at, other_team_error(team));
            return Ok(());
        }
        if let Some(moving) = existing.home()?.moving() {
            self.send_refusal(team, created_at, moving_error(team, &moving));
            return Ok(());
        }
        let recorded = self.recorded_home(existing)?;
        if recorded.epoch > epoch {
            self.send_home(team, created_at, recorded);
        } else if epoch == TeamHome::FIRST_EPOCH && recorded.host.is_none() {
            self.send_refusal(team, created_at, other_team_error(team));
        } else {
            self.refuse_second_home(team, created_at, recorded);
        }
        Ok(())
    }

    /// At the annex: tells a home that another one has the same epoch.
    fn refuse_second_home(&mut self, team: &TeamName, created_at: u64, recorded: RecordedHome) {
        let (error, epoch) = (second_home_error(team, &recorded), recorded.epoch);
        if recorded.host.is_none() {
            let other = machine_of_link(&self.link);
            self.notify(MirrorNotice::TwoHomes { team: team.clone(), epoch, first: None, second: other });
        }
        if epoch > TeamHome::FIRST_EPOCH {
            self.send_home(team, created_at, recorded);
        }
        self.send_refusal(team, created_at, error);
    }

    fn send_refusal(&mut self, team: &TeamName, created_at: u64, error: ErrorReport) {
        self.send(ItemPayload::TeamRefused { team: team.clone(), created_at, error });
    }

    fn send_home(&mut self, team: &TeamName, created_at: u64, recorded: RecordedHome) {
        let RecordedHome { host: home, epoch } = recorded;
        let (team, work) = (team.clone(), LocalWork::OnlyHere);
        self.send(ItemPayload::HomeMoved { team, created_at, epoch, home, work });
    }

    fn recorded_home(&self, existing: &Team) -> Result<RecordedHome, Error> {
        let TeamHome { epoch, state } = existing.home()?;
        if let HomeState::Moved(MovedHome { host, epoch, .. }) = state {
            return Ok(RecordedHome { host: Some(host), epoch });
        }
        let mark = self.root.mirror_mark(existing.name())?;
        Ok(RecordedHome { host: mark.map(|mark| machine_of_link(&mark)), epoch })
    }

    /// This host is the home of the team, and an unknown second home has sent the team's config.
    /// The second home has the higher epoch, so this function records that it replaces this host.
    pub(crate) fn note_replaced_by_sender(
        &mut self,
        existing: &Team,
        created_at: u64,
        epoch: u64,
    ) -> Result<(), Error> {
        let host = machine_of_link(&self.link);
        let (since, work) = (now(), LocalWork::OnlyHere);
        let named_by = HomeNameSource::Machine;
        self.note_replaced(existing, MovedHome { host, named_by, epoch, since, created_at, work })
    }

    /// Records that another host has replaced this one as the team's home.
    fn note_replaced(&mut self, existing: &Team, moved: MovedHome) -> Result<(), Error> {
        let team = existing.name();
        let TeamHome { epoch, .. } = self.root.team_home(team)?;
        let home = TeamHome { epoch, state: HomeState::Moved(moved.clone()) };
        self.root.set_team_home(team, &home)?;
        self.notify(MirrorNotice::HomeMoved { team: team.clone(), moved });
        if self.teams.taken.remove(team).is_some() {
            self.teams.save(&self.state)?;
        }
        Ok(())
    }

    /// An earlier home reports that `host` has become the home with this epoch. If this host is a
    /// home of the team too, `host` replaces it if its epoch is higher. If both epochs are equal,
    /// people are told.
    pub(crate) fn note_other_home(
        &mut self,
        team: &TeamName,
        (created_at, epoch): (u64, u64),
        host: &HostName,
    ) -> Result<(), Error> {
        let existing = match self.root.team(team) {
            Err(Error::NoSuchTeam { .. }) => return Ok(()),
            existing => existing?,
        };
        let Some(epoch_here) = epoch_of_home_here(&existing, created_at)? else { return Ok(()) };
        match epoch_here.cmp(&epoch) {
            Ordering::Greater => Ok(()),
            Ordering::Equal => {
                let (team, other) = (team.clone(), host.clone());
                self.notify(MirrorNotice::TwoHomes { team, epoch, first: None, second: other });
                Ok(())
            }
            Ordering::Less => {
                let (host, since, work) = (host.clone(), now(), LocalWork::OnlyHere);
                let named_by = HomeNameSource::Machine;
                self.note_replaced(&existing, MovedHome { host, named_by, epoch, since, created_at, work })
            }
        }
    }

    /// At the home: tells people that `other` says it is the home too, with the epoch in the record
    /// of this host. Does nothing if the home was moved away from here, or was never moved.
    pub(crate) fn note_equal_home(&mut self, team: &TeamName, record: &TeamHome, other: HostName) {
        let epoch = record.epoch;
        if !matches!(record.state, HomeState::Moved(_)) && epoch > TeamHome::FIRST_EPOCH {
            self.notify(MirrorNotice::TwoHomes { team: team.clone(), epoch, first: None, second: other });
        }
    }

    /// At an old home whose record names only the machine of the new home: replaces that name. An
    /// annex has reported that it is the home, with the same epoch, so it counts as the new home.
    /// `moved` has its name in `hosts.toml`, and whether it has what was done here.
    pub(crate) fn name_new_home(
        &mut self,
        team: &TeamName,
        record: &TeamHome,
        moved: MovedHome,
    ) -> Result<(), Error> {
        let moved = MovedHome { named_by: HomeNameSource::HostsFile, ..moved };
        let home = TeamHome { epoch: record.epoch, state: HomeState::Moved(moved) };
        self.root.set_team_home(team, &home)
    }

    /// At an old home: answers an annex, `claimant`, that says it is the home, although the record
    /// names another host. Sends it the name and epoch of that host. If both epochs are equal,
    /// tells people.
    pub(crate) fn answer_second_home(
        &mut self,
        team: &TeamName,
        moved: &MovedHome,
        (claimant, epoch): (HostName, u64),
    ) {
        let MovedHome { host, created_at, .. } = moved.clone();
        if claimant == host {
            return;
        }
        if moved.epoch == epoch {
            let (team, first) = (team.clone(), Some(host.clone()));
            self.notify(MirrorNotice::TwoHomes { team, epoch, first, second: claimant });
        }
        let (team, epoch) = (team.clone(), moved.epoch);
        self.send(ItemPayload::OtherHome { team, created_at, epoch, home: host });
    }
}

/// The epoch of the team if its home is here and is not being moved, and if the team was created at
/// `created_at`.
pub(crate) fn epoch_of_home_here(existing: &Team, created_at: u64) -> Result<Option<u64>, Error> {
    let home = existing.home()?;
    let is_home = home.state == HomeState::Settled && !existing.is_mirror();
    Ok((is_home && existing.config()?.created_at == created_at).then_some(home.epoch))
}

/// The machine at the home's end of a link, from the link's identity or the mark of its mirror.
fn machine_of_link(link: &str) -> HostName {
    let home = link.split(['.', ' ']).next().and_then(HomeId::parse);
    home.map_or_else(|| HostName::parse("host").expect("it is a valid name"), |home| home.machine())
}

fn other_team_error(team: &TeamName) -> ErrorReport {
    let message = format!("cannot use this host for {team}: it has another team of that name");
    ErrorReport::new(ErrorKind::AlreadyExists, message)
        .with_help("take another name for one of them, or delete the one there")
}

fn moving_error(team: &TeamName, moving: &MovingHome) -> ErrorReport {
    let host = &moving.host;
    let message = format!(
        "cannot use this host for {team} yet: it moves the home of {team} to {host}, which has not decided"
    );
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("whether {host} has contact, type there: teamctl status -t {team}"))
}

fn second_home_error(team: &TeamName, recorded: &RecordedHome) -> ErrorReport {
    let epoch = recorded.epoch;
    let message = match &recorded.host {
        None => format!("cannot use this host for {team}: it is a home of {team} too (epoch {epoch})"),
        Some(home) => {
            format!(
                "cannot use this host for {team}: another home of {team}, {home}, uses it (epoch {epoch})"
            )
        }
    };
    ErrorReport::new(ErrorKind::AlreadyExists, message).with_help(format!(
        "end one of both homes, there: teamctl export {team}; teamctl delete {team} --force"
    ))
}
