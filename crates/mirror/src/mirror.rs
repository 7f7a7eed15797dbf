//! One end of the mirrors between two hosts. Decides what to do after a file change or a received
//! item.

use crate::damaged_files::unless_damaged;
use crate::items_awaiting_acceptance::{AwaitingAcceptance, OnAcceptance};
use crate::json_fields::Fields;
use crate::known_messages::message_key;
use crate::members::{create_mirror, parse_config};
use crate::messages::{Selection, SentMessage};
use crate::mirrored_teams::MirroredTeams;
use crate::output::{MirrorNotice, MirrorOutput};
use crate::team_mirror::{TeamMirror, remove_state};
use protocol::annex_link::{ItemPayload, LinkItem, TaskChange};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Error, Root, StateDir, message_id};

/// Maximum number of message ids in one item.
const IDS_OF_ITEM: usize = 1_000;

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

impl MirrorSide {
    /// Whether this end accepts such an item from the other end. Only the home sends decisions. The
    /// annex sends reports and proposals.
    fn may_receive(&self, payload: &ItemPayload) -> bool {
        let is_home = matches!(self, MirrorSide::Home { .. });
        match payload {
            ItemPayload::Team { .. }
            | ItemPayload::TeamDeleted { .. }
            | ItemPayload::Task { .. }
            | ItemPayload::TaskIds { .. }
            | ItemPayload::TaskChangeAnswer { .. } => !is_home,
            ItemPayload::TeamRefused { .. }
            | ItemPayload::Members { .. }
            | ItemPayload::Read { .. }
            | ItemPayload::TaskChange { .. } => is_home,
            ItemPayload::Message { .. }
            | ItemPayload::Barrier { .. }
            | ItemPayload::BarrierReached { .. } => true,
        }
    }
}

/// A file of a team that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The inbox of this member.
    Inbox(MemberName),
    /// A task file.
    Task(TaskId),
    /// config.json.
    Config,
}

/// Whether the home has decided about the changes of a task in the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskCheck {
    /// The home has answered all changes.
    Decided,
    /// A change has no answer yet. [`MirrorNotice::TaskDecided`] follows.
    Undecided,
}

/// All mirrors of one link at one end.
///
/// Every method may block on file access. The caller sends the items of all outputs in the order of
/// the calls. After an error, a later call repeats what failed.
#[derive(Debug)]
pub struct Mirror {
    side: MirrorSide,
    /// Identity of the link. The marker file of each of its mirrors has it.
    link: String,
    root: Root,
    state: StateDir,
    teams: MirroredTeams,
    mirrors: BTreeMap<TeamName, TeamMirror>,
    awaiting: AwaitingAcceptance,
    /// The output that the next successful call returns.
    output: MirrorOutput,
}

impl Mirror {
    /// Opens the mirrors of the link with the identity `link`, whose state is in the directory
    /// `state`. `kept` are the items of this end that the link keeps. `last_number` is the number
    /// of the last item that the link has ever kept.
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
            output: MirrorOutput::default(),
        };
        mirror.note_kept_items(kept)?;
        mirror.send_again()?;
        Ok(mirror)
    }

    /// Records the items that the link keeps. An earlier process may have crashed before it
    /// recorded them.
    fn note_kept_items(&mut self, kept: &[Arc<LinkItem>]) -> Result<(), Error> {
        for item in kept {
            let Some(team) = item.payload.team().filter(|team| self.teams.active.contains(*team)) else {
                continue;
            };
            if !self.is_mirrored(team)? {
                continue;
            }
            self.mirror(team)?;
            let Mirror { state, mirrors, .. } = self;
            let Some(mirror) = mirrors.get_mut(team) else { continue };
            match &item.payload {
                ItemPayload::Message { to, message, .. } => {
                    mirror.known_messages.record(&[message_key(to, &message_id(message))])?;
                }
                ItemPayload::TaskChange { id, change, .. } => {
                    mirror.tasks.entry(*id).or_default().changes.add_kept(item.number, change);
                    mirror.save_task(state, *id)?;
                }
                ItemPayload::TaskChangeAnswer { .. } => {
                    mirror.unsent_answers.remove_if_oldest(&item.payload)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends again each answer and each change of a task that the link may have lost in a crash.
    fn send_again(&mut self) -> Result<(), Error> {
        for team in self.teams() {
            if self.is_mirrored(&team)? {
                let mirror = self.mirror(&team)?;
                let (answers, changes) = (mirror.unsent_answers.all(), mirror.changes_to_send_again());
                for answer in answers {
                    self.send_until(answer, OnAcceptance::ForgetAnswer { team: team.clone() });
                }
                changes.into_iter().for_each(|change| self.send_task(&team, change));
            }
        }
        Ok(())
    }

    /// The teams that are mirrored.
    pub fn teams(&self) -> Vec<TeamName> {
        self.teams.active.iter().cloned().collect()
    }

    /// At the home: begins to mirror a team. If the team is mirrored already, sends its config and
    /// tasks again.
    ///
    /// # Errors
    ///
    /// If the team or its state can't be read or written.
    pub fn add_team(&mut self, team: &TeamName) -> Result<MirrorOutput, ErrorReport> {
        self.teams.ended.remove(team);
        if self.teams.active.insert(team.clone()) {
            self.teams.save(&self.state)?;
        }
        // The annex may have a new mirror, without tasks.
        self.mirror(team)?.sent_tasks.clear();
        self.compare_team(team)?;
        Ok(self.take_output())
    }

    /// At the home: ends the mirror of a team that was deleted. At the annex: forgets a mirror that the
    /// daemon has deleted.
    ///
    /// # Errors
    ///
    /// If the state can't be written.
    pub fn remove_team(&mut self, team: &TeamName) -> Result<MirrorOutput, ErrorReport> {
        self.mirrors.remove(team);
        remove_state(&self.state, team)?;
        if self.teams.active.remove(team) {
            match self.side {
                MirrorSide::Home { .. } => drop(self.teams.ended.insert(team.clone())),
                MirrorSide::Annex => {
                    self.teams.ended.remove(team);
                    self.root.unmark_mirror(team)?;
                }
            }
            self.teams.save(&self.state)?;
            self.send_ended_teams();
        }
        Ok(self.take_output())
    }

    /// Compares a changed file with what the other end has. Does nothing for a team that is not
    /// mirrored.
    ///
    /// # Errors
    ///
    /// If files can't be read.
    pub fn handle_change(
        &mut self,
        team: &TeamName,
        change: &FileChange,
    ) -> Result<MirrorOutput, ErrorReport> {
        if self.is_mirrored(team)? {
            unless_damaged(match change {
                FileChange::Inbox(owner) => self.compare_inbox(team, owner),
                FileChange::Task(id) => self.compare_task(team, *id),
                FileChange::Config => self.compare_config(team),
            })?;
        }
        Ok(self.take_output())
    }

    /// Compares all files of all teams. The daemon calls this after the start, after each
    /// connection, and after the watcher has lost events. It also calls this before it answers a
    /// barrier.
    ///
    /// # Errors
    ///
    /// If files can't be read.
    pub fn compare_all(&mut self) -> Result<MirrorOutput, ErrorReport> {
        self.send_ended_teams();
        for team in self.teams() {
            if self.is_mirrored(&team)? {
                unless_damaged(self.compare_team(&team))?;
            }
        }
        Ok(self.take_output())
    }

    /// Sends a barrier. [`MirrorNotice::BarrierReached`] follows.
    pub fn send_barrier(&mut self, number: u64) -> MirrorOutput {
        self.send(ItemPayload::Barrier { number });
        self.take_output()
    }

    /// Notes that the link keeps the items up to this number. They arrive also after a crash.
    ///
    /// # Errors
    ///
    /// If the state can't be written.
    pub fn note_accepted(&mut self, number: u64) -> Result<(), ErrorReport> {
        while let Some((item, accepted)) = self.awaiting.next_due(number) {
            self.record_accepted(accepted, item)?;
            self.awaiting.remove_next();
        }
        Ok(())
    }

    fn record_accepted(&mut self, accepted: OnAcceptance, number: u64) -> Result<(), Error> {
        match accepted {
            OnAcceptance::RecordMessage { team, key } => {
                let mirror = self.mirrors.get_mut(&team);
                mirror.map_or(Ok(()), |mirror| mirror.known_messages.record(&[key]))
            }
            OnAcceptance::RecordChange { team, id, change } => {
                self.record_change(&team, (id, &change), number)
            }
            OnAcceptance::ForgetAnswer { team } => {
                let mirror = self.mirrors.get_mut(&team);
                mirror.map_or(Ok(()), |mirror| mirror.unsent_answers.remove_oldest())
            }
            OnAcceptance::ForgetTeam { team } => {
                self.teams.ended.remove(&team);
                self.teams.save(&self.state)
            }
        }
    }

    fn record_change(
        &mut self,
        team: &TeamName,
        (id, change): (TaskId, &TaskChange),
        number: u64,
    ) -> Result<(), Error> {
        let Some(mirror) = self.mirrors.get_mut(team) else { return Ok(()) };
        if let Some(task) = mirror.tasks.get_mut(&id) {
            task.changes.note_kept(number, change);
        }
        mirror.save_task(&self.state, id)
    }

    /// The link keeps a change that was answered, also if that was not told yet.
    fn note_answered(&mut self, team: &TeamName, id: TaskId, change: &TaskChange) -> Result<(), ErrorReport> {
        let change = OnAcceptance::RecordChange { team: team.clone(), id, change: change.clone() };
        self.awaiting.number_of(&change).map_or(Ok(()), |number| self.note_accepted(number))
    }

    /// Stores an item of the other end. After a crash, the same item may come again.
    ///
    /// # Errors
    ///
    /// If files can't be read or written. The caller must apply the item again.
    pub fn apply(&mut self, payload: &ItemPayload) -> Result<MirrorOutput, ErrorReport> {
        if !self.side.may_receive(payload) {
            tracing::warn!(?payload, "dropped an item that this end does not take");
            return Ok(self.take_output());
        }
        match payload {
            ItemPayload::Barrier { number } => self.send(ItemPayload::BarrierReached { number: *number }),
            ItemPayload::BarrierReached { number } => {
                self.notify(MirrorNotice::BarrierReached { number: *number });
            }
            ItemPayload::Team { team, config } => self.apply_config(team, config)?,
            ItemPayload::TeamDeleted { team } => self.end_team(team)?,
            ItemPayload::TeamRefused { team, error } => {
                self.notify(MirrorNotice::TeamRefused { team: team.clone(), error: error.clone() });
            }
            ItemPayload::TaskChangeAnswer { team, id, change, .. } => {
                self.note_answered(team, *id, change)?;
                if self.is_mirrored(team)? {
                    self.apply_to_team(team, payload)?;
                }
            }
            ItemPayload::Members { team, .. }
            | ItemPayload::Message { team, .. }
            | ItemPayload::Read { team, .. }
            | ItemPayload::Task { team, .. }
            | ItemPayload::TaskIds { team, .. }
            | ItemPayload::TaskChange { team, .. } => {
                // The team may have been deleted after the other end had sent the item.
                if self.is_mirrored(team)? {
                    self.apply_to_team(team, payload)?;
                }
            }
        }
        Ok(self.take_output())
    }

    /// At the annex: compares a task. Returns whether the home has answered all its changes.
    ///
    /// # Errors
    ///
    /// `Timeout` if this link does not mirror the team. Other errors if files can't be read.
    pub fn check_task(
        &mut self,
        team: &TeamName,
        task: TaskId,
    ) -> Result<(TaskCheck, MirrorOutput), ErrorReport> {
        if self.side != MirrorSide::Annex || !self.is_mirrored(team)? {
            let message = format!("cannot confirm task {task}: this link does not mirror {team}");
            return Err(ErrorReport::new(ErrorKind::Timeout, message));
        }
        let output = self.handle_change(team, &FileChange::Task(task))?;
        let is_decided = self.mirror(team)?.tasks.get(&task).is_none_or(|task| task.changes.is_empty());
        Ok((if is_decided { TaskCheck::Decided } else { TaskCheck::Undecided }, output))
    }

    /// Whether the team is mirrored and its files exist. Missing files alone do not end a mirror.
    /// [`Mirror::remove_team`] ends it.
    fn is_mirrored(&self, team: &TeamName) -> Result<bool, Error> {
        // While a mirror is deleted, its missing files must not count as changes.
        if !self.teams.active.contains(team) || self.teams.ended.contains(team) {
            return Ok(false);
        }
        match self.root.team(team) {
            Ok(_) => Ok(true),
            Err(Error::NoSuchTeam { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The mirror of a team, opened again if the team's directory was replaced.
    fn mirror(&mut self, team: &TeamName) -> Result<&mut TeamMirror, Error> {
        if self.mirrors.get(team).is_none_or(|mirror| !mirror.team.is_current()) {
            let mut mirror = TeamMirror::open(self.root.team(team)?, &self.state)?;
            if let MirrorSide::Home { annex } = &self.side {
                mirror.load_members(annex)?;
            }
            self.mirrors.insert(team.clone(), mirror);
        }
        Ok(self.mirrors.get_mut(team).expect("it was just inserted"))
    }

    fn mirror_and_state(&mut self, team: &TeamName) -> Result<(&mut TeamMirror, &StateDir), Error> {
        self.mirror(team)?;
        Ok((self.mirrors.get_mut(team).expect("it was just opened"), &self.state))
    }

    fn compare_team(&mut self, team: &TeamName) -> Result<(), Error> {
        let side = self.side.clone();
        let mirror = self.mirror(team)?;
        mirror.sent_config = None;
        mirror.members_are_sent = false;
        let inboxes = mirror.team.inbox_owners()?;
        self.compare_config(team)?;
        let (mirror, state) = self.mirror_and_state(team)?;
        let tasks = match side {
            MirrorSide::Home { .. } => mirror.new_tasks_for_annex()?,
            MirrorSide::Annex => mirror.all_changes_for_home(state)?,
        };
        tasks.into_iter().for_each(|task| self.send_task(team, task));
        inboxes.iter().try_for_each(|owner| unless_damaged(self.compare_inbox(team, owner)))
    }

    fn compare_config(&mut self, team: &TeamName) -> Result<(), Error> {
        let side = self.side.clone();
        let mirror = self.mirror(team)?;
        let item = match &side {
            MirrorSide::Home { annex } => mirror.config_for_annex(annex)?,
            MirrorSide::Annex => mirror.members_for_home()?,
        };
        item.into_iter().for_each(|item| self.send(item));
        Ok(())
    }

    fn compare_task(&mut self, team: &TeamName, id: TaskId) -> Result<(), Error> {
        let side = self.side.clone();
        let (mirror, state) = self.mirror_and_state(team)?;
        let item = match side {
            MirrorSide::Home { .. } => mirror.task_for_annex(id)?,
            MirrorSide::Annex => mirror.change_for_home(state, id)?,
        };
        item.into_iter().for_each(|item| self.send_task(team, item));
        Ok(())
    }

    fn send_task(&mut self, team: &TeamName, item: ItemPayload) {
        match item {
            ItemPayload::TaskChange { id, ref change, .. } => {
                let change = change.clone();
                self.send_until(item, OnAcceptance::RecordChange { team: team.clone(), id, change });
            }
            item => self.send(item),
        }
    }

    fn compare_inbox(&mut self, team: &TeamName, owner: &MemberName) -> Result<(), Error> {
        let side = self.side.clone();
        let mirror = self.mirror(team)?;
        let is_at_annex = mirror.members.contains_key(owner);
        let selection = match side {
            MirrorSide::Home { .. } if !is_at_annex => return Ok(()),
            MirrorSide::Home { .. } => Selection::Unread,
            MirrorSide::Annex => Selection::All,
        };
        let messages = mirror.new_messages(owner, selection)?;
        for SentMessage { key, item } in messages {
            self.send_until(item, OnAcceptance::RecordMessage { team: team.clone(), key });
        }
        if side == MirrorSide::Annex && is_at_annex {
            for messages in self.mirror(team)?.newly_read(owner)?.chunks(IDS_OF_ITEM) {
                let (team, owner, messages) = (team.clone(), owner.clone(), messages.to_vec());
                self.send(ItemPayload::Read { team, owner, messages });
            }
        }
        Ok(())
    }

    /// At the annex: makes the mirror, or updates the members that run elsewhere.
    fn apply_config(&mut self, team: &TeamName, config: &Fields) -> Result<(), ErrorReport> {
        let config = parse_config(config).map_err(|reason| {
            ErrorReport::new(ErrorKind::InvalidData, format!("cannot mirror {team}: {reason}"))
        })?;
        match self.root.team(team) {
            Ok(_) if self.teams.ended.contains(team) => return Err(being_deleted_error(team)),
            Ok(_) if self.root.mirror_mark(team)?.as_deref() == Some(self.link.as_str()) => {
                self.mirror(team)?.store_config(&config)?;
            }
            Ok(_) => {
                let refused = ItemPayload::TeamRefused { team: team.clone(), error: other_team_error(team) };
                self.send(refused);
                return Ok(());
            }
            Err(Error::NoSuchTeam { .. }) => {
                self.mirrors.remove(team);
                remove_state(&self.state, team)?;
                self.teams.ended.remove(team);
                create_mirror(&self.root, &config, &self.link)?;
                self.notify(MirrorNotice::TeamMade { team: team.clone() });
            }
            Err(error) => return Err(error.into()),
        }
        if self.teams.active.insert(team.clone()) {
            self.teams.save(&self.state)?;
        }
        Ok(())
    }

    fn apply_to_team(&mut self, team: &TeamName, payload: &ItemPayload) -> Result<(), Error> {
        self.mirror(team)?;
        let Mirror { side, state, mirrors, .. } = self;
        let mirror = mirrors.get_mut(team).expect("it was just opened");
        match payload {
            ItemPayload::Message { to, message, .. } => mirror.store_message(to, message),
            ItemPayload::Read { owner, .. } if !mirror.members.contains_key(owner) => Ok(()),
            ItemPayload::Read { owner, messages, .. } => mirror.mark_read(owner, messages),
            ItemPayload::Members { members, .. } => {
                let MirrorSide::Home { annex } = side.clone() else { return Ok(()) };
                let new_members = mirror.store_members(&annex, members)?;
                new_members.iter().try_for_each(|owner| self.compare_inbox(team, owner))
            }
            ItemPayload::Task { id, task, .. } => {
                let unsent = mirror.store_task(state, *id, task.as_ref())?;
                unsent.into_iter().for_each(|change| self.send_task(team, change));
                Ok(())
            }
            ItemPayload::TaskIds { ids, .. } => {
                let unsent = mirror.remove_other_tasks(state, ids)?;
                unsent.into_iter().for_each(|change| self.send_task(team, change));
                Ok(())
            }
            ItemPayload::TaskChange { id, change, .. } => {
                let answer = mirror.decide_change(*id, change)?;
                self.send_until(answer, OnAcceptance::ForgetAnswer { team: team.clone() });
                Ok(())
            }
            ItemPayload::TaskChangeAnswer { id, change, task, error, .. } => {
                mirror.store_answer(state, (*id, change), (task.as_ref(), error.as_ref()))?;
                let notice =
                    MirrorNotice::TaskDecided { team: team.clone(), task: *id, error: error.clone() };
                self.notify(notice);
                self.compare_task(team, *id)
            }
            ItemPayload::Team { .. }
            | ItemPayload::TeamDeleted { .. }
            | ItemPayload::TeamRefused { .. }
            | ItemPayload::Barrier { .. }
            | ItemPayload::BarrierReached { .. } => Ok(()),
        }
    }

    /// At the home: tells the annex which teams were deleted, until the link keeps these items. At
    /// the annex: asks the daemon to delete the mirrors of these teams.
    fn send_ended_teams(&mut self) {
        for team in self.teams.ended.clone() {
            match self.side {
                MirrorSide::Annex => self.notify(MirrorNotice::TeamEnded { team }),
                MirrorSide::Home { .. } => {
                    let item = ItemPayload::TeamDeleted { team: team.clone() };
                    self.send_until(item, OnAcceptance::ForgetTeam { team });
                }
            }
        }
    }

    /// At the annex: asks the daemon to delete a mirror. The end of the team is recorded, so that
    /// the daemon is asked again after a crash.
    fn end_team(&mut self, team: &TeamName) -> Result<(), Error> {
        if self.teams.active.contains(team) {
            self.teams.ended.insert(team.clone());
            self.teams.save(&self.state)?;
            self.notify(MirrorNotice::TeamEnded { team: team.clone() });
        }
        Ok(())
    }

    fn send(&mut self, item: ItemPayload) {
        self.awaiting.add(None);
        self.output.items.push(item);
    }

    /// Sends an item. `on_acceptance` happens when the link keeps the item.
    fn send_until(&mut self, item: ItemPayload, on_acceptance: OnAcceptance) {
        self.awaiting.add(Some(on_acceptance));
        self.output.items.push(item);
    }

    fn notify(&mut self, notice: MirrorNotice) {
        self.output.notices.push(notice);
    }

    fn take_output(&mut self) -> MirrorOutput {
        std::mem::take(&mut self.output)
    }
}

fn being_deleted_error(team: &TeamName) -> ErrorReport {
    ErrorReport::new(
        ErrorKind::Refused,
        format!("cannot mirror {team} yet: its last mirror is being deleted"),
    )
}

fn other_team_error(team: &TeamName) -> ErrorReport {
    let message = format!("cannot use this host for {team}: it has another team of that name");
    ErrorReport::new(ErrorKind::AlreadyExists, message)
        .with_help("take another name for one of them, or delete the one there")
}
