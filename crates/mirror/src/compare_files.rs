//! Compares the files of a team with what the other end has, and sends what differs.

use crate::config_changes::ConfigPurpose;
use crate::damaged_files::unless_damaged;
use crate::items_awaiting_acceptance::OnAcceptance;
use crate::messages::{MessageToSend, Selection};
use crate::mirror::{Mirror, MirrorSide};
use crate::output::MirrorOutput;
use crate::team_mirror::TeamMirror;
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use store::Error;

/// Maximum number of message ids in one item.
const IDS_OF_ITEM: usize = 1_000;

/// A file of a team that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    /// A change has no answer yet.
    /// [`TaskChangeAnswered`](crate::MirrorNotice::TaskChangeAnswered) follows.
    Undecided,
}

impl Mirror {
    /// Compares a changed file with the other end's version of it, and sends the differences. Does
    /// nothing for a team that is not mirrored.
    ///
    /// # Errors
    ///
    /// If files can't be read.
    pub fn handle_change(
        &mut self,
        team: &TeamName,
        change: &FileChange,
    ) -> Result<MirrorOutput, ErrorReport> {
        if !self.is_inbox_elsewhere(team, change) && self.is_mirrored(team)? {
            unless_damaged(match change {
                FileChange::Inbox(owner) => self.compare_inbox(team, owner),
                FileChange::Task(id) => self.compare_task(team, *id),
                FileChange::Config => self.compare_config(team, ConfigPurpose::Update),
            })?;
        }
        Ok(self.take_output())
    }

    /// At the home: whether the changed file is the inbox of a member that the annex does not run.
    /// Such an inbox need not be compared. With many hosts, most changed files are such inboxes, so
    /// this check reads no files.
    fn is_inbox_elsewhere(&self, team: &TeamName, change: &FileChange) -> bool {
        let is_home = matches!(self.side, MirrorSide::Home { .. });
        match (change, self.mirrors.get(team)) {
            (FileChange::Inbox(owner), Some(mirror)) => is_home && !mirror.members.contains_key(owner),
            _ => false,
        }
    }

    /// Compares all files of all teams. The daemon calls this after the start, after each new
    /// connection, and after the file watcher has lost events. The daemon also calls this before it
    /// answers the item `Barrier`, which asks whether all earlier items were handled.
    ///
    /// # Errors
    ///
    /// If files can't be read.
    pub fn compare_all(&mut self) -> Result<MirrorOutput, ErrorReport> {
        self.send_ended_teams();
        self.send_taken_teams()?;
        // The comparison below asks the home again for missing configs. An earlier answer may have
        // been lost, for example because the config was too long for the link.
        self.wanted.clear();
        for team in self.teams() {
            if self.is_mirrored(&team)? {
                unless_damaged(self.compare_team(&team))?;
                unless_damaged(self.offer_again(&team))?;
            }
        }
        Ok(self.take_output())
    }

    /// At the annex: compares a task. Returns whether the home has answered all changes of the
    /// task.
    ///
    /// # Errors
    ///
    /// `Timeout` if this link does not mirror the team, so that the home cannot answer. Other
    /// errors if files can't be read.
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

    pub(crate) fn compare_team(&mut self, team: &TeamName) -> Result<(), Error> {
        let mirror = self.mirror(team)?;
        mirror.members_are_sent = false;
        let inboxes = mirror.team.inbox_owners()?;
        self.compare_config(team, ConfigPurpose::Comparison)?;
        self.compare_tasks(team)?;
        inboxes.iter().try_for_each(|owner| unless_damaged(self.compare_inbox(team, owner)))
    }

    fn compare_config(&mut self, team: &TeamName, purpose: ConfigPurpose) -> Result<(), Error> {
        let (side, version) = (self.side.clone(), self.awaiting.next_number());
        let MirrorSide::Home { annex } = &side else { return self.compare_members(team) };
        let epoch = self.root.team_home(team)?.epoch;
        let item = self.mirror(team)?.config_for_annex(annex, (version, epoch), purpose)?;
        item.into_iter().for_each(|item| self.send(item));
        Ok(())
    }

    /// At the home: sends the config, all tasks and the budget, because the annex has asked for
    /// them.
    pub(crate) fn send_wanted_team(&mut self, team: &TeamName) -> Result<(), Error> {
        let mirror = self.mirror(team)?;
        mirror.sent_config = None;
        mirror.sent_tasks.clear();
        self.compare_team(team)?;
        self.send_budget_again(team)?;
        self.barriers.note_config_sent();
        Ok(())
    }

    /// At the annex: reports the members that run here. Compares the inbox of each new member from
    /// its beginning, because the last comparison may have been for an earlier member of the same
    /// name.
    fn compare_members(&mut self, team: &TeamName) -> Result<(), Error> {
        let mirror = self.mirror(team)?;
        let before = mirror.members.clone();
        let item = mirror.members_for_home()?;
        mirror.note_new_members(&before);
        let TeamMirror { cursors, uncompared, .. } = mirror;
        cursors.retain(|owner, _| !uncompared.contains(owner));
        item.into_iter().for_each(|item| self.send(item));
        self.compare_new_inboxes(team)
    }

    /// Compares the inboxes of new members. If one fails, a later call compares it and the rest.
    pub(crate) fn compare_new_inboxes(&mut self, team: &TeamName) -> Result<(), Error> {
        while let Some(owner) = self.mirror(team)?.uncompared.first().cloned() {
            unless_damaged(self.compare_inbox(team, &owner))?;
            self.mirror(team)?.uncompared.remove(&owner);
        }
        Ok(())
    }

    /// Compares all tasks. The home also sends their ids, so that the annex deletes the others.
    pub(crate) fn compare_tasks(&mut self, team: &TeamName) -> Result<(), Error> {
        let is_home = self.side != MirrorSide::Annex;
        let mirror = self.mirror(team)?;
        let ids = if is_home { mirror.ids_of_mirrored_tasks()? } else { mirror.ids_of_all_tasks()? };
        ids.iter().try_for_each(|id| unless_damaged(self.compare_task(team, *id)))?;
        if is_home {
            self.send(ItemPayload::TaskIds { team: team.clone(), ids: ids.into_iter().collect() });
        }
        Ok(())
    }

    /// Compares a task. The change is sent at once, because a later error must not lose it.
    pub(crate) fn compare_task(&mut self, team: &TeamName, id: TaskId) -> Result<(), Error> {
        let side = self.side.clone();
        let (mirror, state) = self.mirror_and_state(team)?;
        let item = match side {
            MirrorSide::Home { .. } => mirror.task_for_annex(id)?,
            MirrorSide::Annex => mirror.change_for_home(state, id)?,
        };
        item.into_iter().for_each(|item| self.send_task(team, item));
        Ok(())
    }

    pub(crate) fn send_task(&mut self, team: &TeamName, item: ItemPayload) {
        match item {
            ItemPayload::TaskChange { id, ref change, .. } => {
                let change = change.clone();
                self.send_and_record(item, OnAcceptance::RecordChange { team: team.clone(), id, change });
            }
            item => self.send(item),
        }
    }

    pub(crate) fn compare_inbox(&mut self, team: &TeamName, owner: &MemberName) -> Result<(), Error> {
        let side = self.side.clone();
        let mirror = self.mirror(team)?;
        let is_at_annex = mirror.members.contains_key(owner);
        let selection = match side {
            MirrorSide::Home { .. } if !is_at_annex => return Ok(()),
            MirrorSide::Home { .. } => Selection::Unread,
            MirrorSide::Annex => Selection::All,
        };
        let messages = mirror.new_messages(owner, selection)?;
        for MessageToSend { key, item } in messages {
            self.send_and_record(item, OnAcceptance::RecordMessage { team: team.clone(), key });
        }
        if side == MirrorSide::Annex && is_at_annex {
            let mirror = self.mirror(team)?;
            let created_at = mirror.created_at;
            for messages in mirror.newly_read(owner)?.chunks(IDS_OF_ITEM) {
                let (team, owner, messages) = (team.clone(), owner.clone(), messages.to_vec());
                self.send(ItemPayload::Read { team, created_at, owner, messages });
            }
        }
        Ok(())
    }
}
