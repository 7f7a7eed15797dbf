//! One end of the mirrors between two hosts: its teams, their state, and what it sends.

use crate::barriers::Barriers;
use crate::items_awaiting_acceptance::{AwaitingAcceptance, OnAcceptance};
use crate::mirrored_teams::MirroredTeams;
use crate::output::{MirrorNotice, MirrorOutput};
use crate::team_mirror::{TeamMirror, remove_state};
use protocol::annex_link::{ItemPayload, LinkItem};
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::team_config::TeamConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Error, Root, StateDir, Team};

/// Which end this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MirrorSide {
    /// The files of this host are true.
    Home {
        /// The name of the annex in the hosts file.
        annex: HostName,
    },
    /// This host has mirrors.
    Annex,
}

/// One end of a link, with all teams that are mirrored over the link. The home has a `Mirror` too,
/// although its files are the originals.
///
/// Every method may block on file access. Methods return the items to send ([`MirrorOutput`]). The
/// caller sends the items in the order of the calls. After an error, a later call repeats what
/// failed.
#[derive(Debug)]
pub struct Mirror {
    pub(crate) side: MirrorSide,
    /// Identity of the link, which is in the mark of each of its mirrors.
    pub(crate) link: String,
    pub(crate) root: Root,
    pub(crate) state: StateDir,
    pub(crate) teams: MirroredTeams,
    pub(crate) mirrors: BTreeMap<TeamName, TeamMirror>,
    pub(crate) awaiting: AwaitingAcceptance,
    /// At the annex: the teams whose config was asked for.
    pub(crate) wanted: BTreeSet<TeamName>,
    /// At the home: the teams whose home was offered to the annex since the start. Also the teams
    /// whose offer was in the spool at the start.
    pub(crate) offered: BTreeSet<TeamName>,
    /// At the annex: the teams whose further events wait in the event log.
    pub(crate) left_in_log: BTreeSet<TeamName>,
    /// At the home: the barriers without an answer.
    pub(crate) barriers: Barriers,
    /// The output that the next successful call returns.
    output: MirrorOutput,
}

impl Mirror {
    /// Opens the mirrors of the link with the identity `link`, whose state is in the directory
    /// `state`. `kept` are the items in the spool of this end. `last_number` is the number of the
    /// last item that was ever in this spool.
    ///
    /// # Errors
    ///
    /// If the state can't be read or written.
    pub fn open(
        (side, link): (MirrorSide, String),
        root: Root,
        state: StateDir,
        (kept, last_number): (&[Arc<LinkItem>], u64),
    ) -> Result<Mirror, ErrorReport> {
        let teams = MirroredTeams::open(&state)?;
        let mut mirror = Mirror {
            side,
            link,
            root,
            state,
            teams,
            mirrors: BTreeMap::new(),
            awaiting: AwaitingAcceptance::new(last_number),
            wanted: BTreeSet::new(),
            offered: BTreeSet::new(),
            left_in_log: BTreeSet::new(),
            barriers: Barriers::default(),
            output: MirrorOutput::default(),
        };
        mirror.note_kept_items(kept)?;
        mirror.send_again()?;
        Ok(mirror)
    }

    /// The teams that are mirrored.
    pub fn teams(&self) -> Vec<TeamName> {
        self.teams.active.iter().cloned().collect()
    }

    /// At the home: begins to mirror a team. If the team is mirrored already, compares its files.
    /// An annex that has lost the mirror then asks for its config and tasks.
    ///
    /// # Errors
    ///
    /// If the team or its state can't be read or written.
    pub fn add_team(&mut self, team: &TeamName) -> Result<MirrorOutput, ErrorReport> {
        self.teams.add(team, &self.state)?;
        self.compare_team(team)?;
        Ok(self.take_output())
    }

    /// At the home: ends the mirror of a team that was deleted. At the annex: forgets a mirror that
    /// the daemon has deleted.
    ///
    /// # Errors
    ///
    /// If the state can't be written.
    pub fn remove_team(&mut self, team: &TeamName) -> Result<MirrorOutput, ErrorReport> {
        let was_mirrored = self.teams.active.contains(team);
        self.forget_team(team)?;
        if was_mirrored && matches!(self.side, MirrorSide::Home { .. }) {
            self.teams.ended.insert(team.clone());
            self.teams.save(&self.state)?;
            self.send_ended_teams();
        }
        Ok(self.take_output())
    }

    /// At the annex: ends all mirrors, because the home has forgotten this host.
    ///
    /// # Errors
    ///
    /// If the state can't be written.
    pub fn end_teams(&mut self) -> Result<MirrorOutput, ErrorReport> {
        self.teams().iter().try_for_each(|team| self.end_team(team))?;
        Ok(self.take_output())
    }

    /// At the annex: ends the mirror of a team, because another home has the team now.
    ///
    /// # Errors
    ///
    /// If the state can't be written.
    pub fn end_mirror(&mut self, team: &TeamName) -> Result<MirrorOutput, ErrorReport> {
        self.end_team(team)?;
        Ok(self.take_output())
    }

    /// The notices of a call that has failed. Its items follow with the next successful call.
    pub fn take_notices(&mut self) -> Vec<MirrorNotice> {
        std::mem::take(&mut self.output.notices)
    }

    /// Sends a barrier. [`MirrorNotice::BarrierReached`] follows.
    pub fn send_barrier(&mut self, number: u64) -> MirrorOutput {
        self.barriers.note_sent(number);
        self.send(ItemPayload::Barrier { number });
        self.take_output()
    }

    /// Whether the team is mirrored and its files exist. Missing files do not end a mirror; only
    /// [`Mirror::remove_team`] does.
    ///
    /// At the annex, a program may have removed the mirror and created another team of its name.
    /// Then this end forgets the mirror. Otherwise the tasks of the removed mirror would count as
    /// deleted, and be deleted at the home too.
    pub(crate) fn is_mirrored(&mut self, team: &TeamName) -> Result<bool, Error> {
        // While a mirror is deleted, its missing files must not count as changes.
        if !self.teams.active.contains(team) || self.teams.ended.contains(team) {
            return Ok(false);
        }
        match self.root.team(team) {
            Ok(existing) if self.is_own(&existing)? => Ok(true),
            Ok(_) => self.forget_team(team).map(|()| false),
            Err(Error::NoSuchTeam { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether this is the team that this end mirrors, and not another team of the same name. At
    /// the home this is always true. There, no file is read, because this function is called for
    /// each changed file on each link.
    pub(crate) fn is_own(&self, team: &Team) -> Result<bool, Error> {
        if self.side != MirrorSide::Annex {
            return Ok(true);
        }
        match team.cached_config_if_valid() {
            // A damaged config says nothing about the team.
            None => Ok(self.root.mirror_mark(team.name())?.is_some()),
            Some(config) => Ok(self.root.mirror_mark(team.name())? == Some(self.mark(&config))),
        }
    }

    /// The mark of a mirror: the link, and when the team was created.
    pub(crate) fn mark(&self, config: &TeamConfig) -> String {
        format!("{} {}", self.link, config.created_at)
    }

    /// When a team was created at its home. At the annex, the time is read from the mirror's mark
    /// ([`Mirror::mark`]), because a program may have changed config.json there.
    pub(crate) fn created_at(&self, team: &Team) -> Result<u64, Error> {
        let mark = self.root.mirror_mark(team.name())?;
        let marked = mark.as_ref().and_then(|mark| mark.split(' ').nth(1)?.parse().ok());
        marked.map_or_else(|| Ok(team.cached_config()?.created_at), Ok)
    }

    /// At the annex: whether the team is a mirror of an earlier link from the same home. The names
    /// of both links differ only in their generation.
    pub(crate) fn is_of_earlier_link(&self, team: &TeamName) -> Result<bool, Error> {
        let without_generation = |link: &str| link.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
        let mark = self.root.mirror_mark(team)?;
        let link = mark.as_ref().and_then(|mark| mark.split(' ').next());
        Ok(link.is_some_and(|link| {
            link != self.link && without_generation(link) == without_generation(&self.link)
        }))
    }

    /// Forgets a team whose mirror does not exist or was refused, or whose home moves.
    pub(crate) fn forget_team(&mut self, team: &TeamName) -> Result<(), Error> {
        self.mirrors.remove(team);
        self.wanted.remove(team);
        self.offered.remove(team);
        self.left_in_log.remove(team);
        remove_state(&self.state, team)?;
        // The mark may be that of a later link.
        let mark = self.root.mirror_mark(team)?;
        if mark.is_some_and(|mark| mark.split(' ').next() == Some(&self.link)) {
            self.root.unmark_mirror(team)?;
        }
        self.teams.active.remove(team);
        self.teams.ended.remove(team);
        self.teams.save(&self.state)
    }

    /// The mirror of a team, opened again if the team's directory was replaced.
    pub(crate) fn mirror(&mut self, team: &TeamName) -> Result<&mut TeamMirror, Error> {
        if self.mirrors.get(team).is_none_or(|mirror| !mirror.team.is_current()) {
            let existing = self.root.team(team)?;
            let created_at = self.created_at(&existing)?;
            let mut mirror = TeamMirror::open((existing, created_at), &self.state)?;
            if let MirrorSide::Home { annex } = &self.side {
                mirror.load_members(annex)?;
            }
            self.mirrors.insert(team.clone(), mirror);
        }
        Ok(self.mirrors.get_mut(team).expect("it was just inserted"))
    }

    pub(crate) fn mirror_and_state(
        &mut self,
        team: &TeamName,
    ) -> Result<(&mut TeamMirror, &StateDir), Error> {
        self.mirror(team)?;
        Ok((self.mirrors.get_mut(team).expect("it was just opened"), &self.state))
    }

    /// Repeats what a crash may have lost about deleted teams. At the home: tells the annex which
    /// teams were deleted, until the link keeps the item. At the annex: asks the daemon to delete
    /// the mirrors of these teams.
    pub(crate) fn send_ended_teams(&mut self) {
        for team in self.teams.ended.clone() {
            match self.side {
                MirrorSide::Annex => self.notify(MirrorNotice::TeamEnded { team }),
                MirrorSide::Home { .. } => {
                    let item = ItemPayload::TeamDeleted { team: team.clone() };
                    self.send_and_record(item, OnAcceptance::ForgetTeam { team });
                }
            }
        }
    }

    pub(crate) fn send(&mut self, item: ItemPayload) {
        self.awaiting.add(None);
        self.output.items.push(item);
    }

    /// Sends an item. `on_acceptance` happens when the link keeps the item.
    pub(crate) fn send_and_record(&mut self, item: ItemPayload, on_acceptance: OnAcceptance) {
        self.awaiting.add(Some(on_acceptance));
        self.output.items.push(item);
    }

    pub(crate) fn notify(&mut self, notice: MirrorNotice) {
        self.output.notices.push(notice);
    }

    pub(crate) fn take_output(&mut self) -> MirrorOutput {
        std::mem::take(&mut self.output)
    }
}
