//! At an old home that its new home uses as an annex: makes the files here the mirror.

use crate::json_fields::Fields;
use crate::known_messages::message_key;
use crate::mirror::Mirror;
use crate::mirrored_task::MirroredTask;
use crate::output::MirrorNotice;
use crate::team_mirror::TeamMirror;
use crate::two_homes::epoch_of_home_here;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HOME_HOST;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig};
use protocol::team_home::{HomeState, LocalWork, MovedHome, TeamHome};
use serde_json::Value;
use store::{Error, StateDir, Team, message_id};

impl Mirror {
    /// Whether this host was the home of this team, and has recorded that the home moved away. The
    /// epoch in the record must be at most `epoch`.
    pub(crate) fn has_moved_from_here(
        &self,
        existing: &Team,
        created_at: u64,
        epoch: u64,
    ) -> Result<bool, Error> {
        let moved = existing.home()?.moved();
        Ok(moved.is_some_and(|moved| moved.created_at == created_at && moved.epoch <= epoch))
    }

    /// Whether this host is the home of this team and does not know that a home with a higher epoch
    /// has replaced it. For example, another host has become the home while this host had no
    /// contact.
    pub(crate) fn is_outdated_home(
        &self,
        existing: &Team,
        created_at: u64,
        epoch: u64,
    ) -> Result<bool, Error> {
        let epoch_here = epoch_of_home_here(existing, created_at)?;
        Ok(epoch_here.is_some_and(|epoch_here| epoch_here < epoch))
    }

    /// Makes the team's files on this host a mirror. If the files may have changes that exist only
    /// here, this function first keeps a copy of them. In this case, it returns an error if members
    /// still run here.
    pub(crate) fn become_annex(
        &mut self,
        existing: &Team,
        config: &TeamConfig,
        epoch: u64,
    ) -> Result<(), ErrorReport> {
        let (team, TeamHome { epoch: old_epoch, state }) = (existing.name(), existing.home()?);
        if matches!(state, HomeState::Moved(MovedHome { work: LocalWork::OnlyHere, .. })) {
            if has_own_members(existing)? {
                return Err(members_end_error(team, epoch));
            }
            let copy = existing.keep_copy(old_epoch)?;
            self.notify(MirrorNotice::TeamReplaced { team: team.clone(), copy });
        }
        Ok(self.make_mirror_of_files(existing, config)?)
    }

    /// The home has all tasks and messages of the team, so this host records that it need not send
    /// them. The file that marks the team as a mirror is written last. So after a crash the file is
    /// missing, and the next call does everything again.
    fn make_mirror_of_files(&mut self, existing: &Team, config: &TeamConfig) -> Result<(), Error> {
        let team = existing.name();
        self.forget_team(team)?;
        let (mirror, state) = self.mirror_and_state(team)?;
        mirror.record_messages_of_home()?;
        mirror.record_tasks_of_home(state)?;
        existing.set_member_fields(&MemberName::lead(), &[("host", Value::from(HOME_HOST))])?;
        self.root.mark_as_mirror(team, &self.mark(config))
    }
}

/// Whether the config lists members of this host.
fn has_own_members(existing: &Team) -> Result<bool, Error> {
    let is_own = |member: &Member| member.host.is_none() && !member.name.is_lead();
    Ok(existing.config()?.members.iter().any(is_own))
}

fn members_end_error(team: &TeamName, epoch: u64) -> ErrorReport {
    let message = format!(
        "cannot mirror {team} yet: another machine is its home (epoch {epoch}), so its members here must end first"
    );
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
        "if none runs there, type there: teamctl export {team}; teamctl delete {team} --force"
    ))
}

impl TeamMirror {
    fn record_messages_of_home(&mut self) -> Result<(), Error> {
        for owner in self.team.inbox_owners()? {
            let entries = self.team.inbox(&owner).read()?;
            let messages = entries.iter().filter_map(|entry| entry.message.as_ref().ok());
            let keys: Vec<String> =
                messages.map(|message| message_key(&owner, &message_id(message))).collect();
            self.known_messages.record(&keys)?;
        }
        Ok(())
    }

    fn record_tasks_of_home(&mut self, state: &StateDir) -> Result<(), Error> {
        for task in self.team.tasks().list()?.into_iter().filter(|task| !task.is_internal()) {
            let at_home: Fields = task.to_fields();
            self.tasks.insert(task.id, MirroredTask { at_home: Some(at_home), ..MirroredTask::default() });
            self.save_task(state, task.id)?;
        }
        Ok(())
    }
}
