//! Members who come, or go, at once. Their config is one file: those who wait for the thread behind one another are put on the
//! team, or taken off it, in one change of it, and each is answered for itself, as if it had been alone.

use crate::core::jobs::files::{FileJob, FileResult, Registration};
use crate::core::roster::record::{AgentRecord, SharedRecord};
use crate::io::files::members::{
    PendingRegistration, PreparedRegistration, complete_tracking_task, is_registered, notify_lead,
};
use crate::io::files::thread::{FilesThread, to_error};
use protocol::error::ErrorReport;
use protocol::name::AgentName;
use protocol::team_config::Member;
use store::{Error, Team};

impl FilesThread {
    /// What `gather` has found.
    pub(super) fn run_member_batch(&mut self, all: Vec<FileJob>) -> Vec<FileResult> {
        let (mut coming, mut going) = (Vec::new(), Vec::new());
        for job in all {
            match job {
                FileJob::RegisterMember { spawn, record, is_respawn: again, at } => {
                    coming.push(PendingRegistration { spawn, record, is_respawn: again, at });
                }
                FileJob::DeregisterMember { record } => going.push(record),
                other => return self.run_job(other).into_iter().collect(),
            }
        }
        let mut done = self.register_all(&coming);
        done.extend(self.deregister_all(&going));
        done
    }

    /// Inboxes first: an agent that is on the team can be written to.
    fn register_all(&mut self, coming: &[PendingRegistration]) -> Vec<FileResult> {
        let ready: Vec<Result<PreparedRegistration, ErrorReport>> =
            coming.iter().map(|one| self.prepare_registration(one)).collect();
        let members: Vec<Member> = ready.iter().flatten().map(|one| one.member.clone()).collect();
        let team = ready.iter().flatten().next().map(|one| one.team.clone());
        let mut added = team.map(|team| add_members(&team, &members)).unwrap_or_default().into_iter();
        let mut enrolled = |one: &PendingRegistration, ready: Result<PreparedRegistration, ErrorReport>| {
            let PreparedRegistration { team, lead_session, .. } = ready?;
            added.next().expect("one for each who is ready").map_err(ErrorReport::from)?;
            let task = team.tasks().create_internal(&one.record.name, &one.record.prompt)?;
            Ok(Registration { tracking_task: task.id, lead_session })
        };
        let results = coming.iter().zip(ready);
        results
            .map(|(one, ready)| FileResult::MemberRegistered {
                spawn: one.spawn.clone(),
                result: enrolled(one, ready),
            })
            .collect()
    }

    fn deregister_all(&mut self, going: &[SharedRecord]) -> Vec<FileResult> {
        let approved: Vec<Result<bool, Error>> = going.iter().map(|it| self.has_approved(it)).collect();
        let ready: Vec<Result<(), ErrorReport>> =
            going.iter().map(|record| self.check_exit_saved(record)).collect();
        let able = going.iter().zip(&approved).zip(&ready).filter(|(_, ready)| ready.is_ok());
        // Where nobody can tell whether its lead has its word, that is not told now: it is all done once more.
        let able: Vec<(&AgentRecord, bool)> =
            able.map(|((it, approved), _)| (&**it, matches!(approved, Ok(false)))).collect();
        let mut taken = self.remove_from_teams(&able).into_iter();
        let all = going.iter().zip(approved).zip(ready);
        all.map(|((record, approved), ready)| {
            let taken = ready.and_then(|()| to_error(taken.next().expect("one for each who may depart")));
            let approved = to_error(approved);
            let left = taken.and(approved.clone().map(drop));
            self.finish_deregistration(record, approved.unwrap_or(false), left.err())
        })
        .collect()
    }

    /// Where there is no such team there is nothing to be taken off.
    fn remove_from_teams(&mut self, all: &[(&AgentRecord, bool)]) -> Vec<Result<(), Error>> {
        let Some((first, _)) = all.first() else { return Vec::new() };
        match self.open_team(&first.team) {
            Ok(team) => remove_members(&team, all).into_iter().map(ignore_missing_team).collect(),
            Err(error) if all.len() == 1 => vec![ignore_missing_team(Err(error))],
            Err(_) => all.iter().flat_map(|one| self.remove_from_teams(std::slice::from_ref(one))).collect(),
        }
    }
}

fn ignore_missing_team(taken: Result<(), Error>) -> Result<(), Error> {
    match taken {
        Err(Error::NoSuchTeam { .. }) => Ok(()),
        taken => taken,
    }
}

/// A name that somebody else's member has got meanwhile is taken, although the roster does not know it.
fn add_members(team: &Team, members: &[Member]) -> Vec<Result<(), Error>> {
    let taken = |member: &Member| Error::AlreadyExists { what: format!("member {}", member.name) };
    match team.add_missing_members(members) {
        Ok(added) => {
            let is_added = |member: &Member| added.contains(&member.name);
            members.iter().map(|it| if is_added(it) { Ok(()) } else { Err(taken(it)) }).collect()
        }
        Err(error) if members.len() == 1 => vec![Err(error)],
        Err(_) => members.iter().map(|member| team.add_member(member)).collect(),
    }
}

/// Each part is tried, whatever became of the others: a damaged inbox must not keep a member on the team. All
/// of it can be done again. An entry of that name from another life is not ours to remove. With each stands whether its
/// lead is to be told.
fn remove_members(team: &Team, all: &[(&AgentRecord, bool)]) -> Vec<Result<(), Error>> {
    let untold: Vec<&AgentRecord> = all.iter().filter(|(_, tells)| *tells).map(|(it, _)| *it).collect();
    let mut told = all_or_each(&untold, |some| notify_lead(team, some)).into_iter();
    let tracked: Vec<Result<bool, Error>> = all
        .iter()
        .map(|(record, _)| match is_registered(team, record)? {
            true => complete_tracking_task(team, record).map(|()| true),
            false => Ok(false),
        })
        .collect();
    let ours = all.iter().zip(&tracked).filter(|(_, tracked)| matches!(tracked, Ok(true)));
    let names: Vec<AgentName> = ours.map(|((record, _), _)| record.name.clone()).collect();
    let mut removed = all_or_each(&names, |some| team.remove_members(some)).into_iter();
    let results = all.iter().zip(tracked).map(|((_, tells), tracked)| {
        let told = if *tells { told.next().expect("one for each who was not told of") } else { Ok(()) };
        told.and(tracked.and_then(|ours| match ours {
            true => removed.next().expect("one for each of ours"),
            false => Ok(()),
        }))
    });
    results.collect()
}

/// All in one; where that fails, each by itself, for a failure of its own.
fn all_or_each<T>(all: &[T], act: impl Fn(&[T]) -> Result<(), Error>) -> Vec<Result<(), Error>> {
    match if all.is_empty() { Ok(()) } else { act(all) } {
        Ok(()) => all.iter().map(|_| Ok(())).collect(),
        Err(error) if all.len() == 1 => vec![Err(error)],
        Err(_) => all.iter().map(|one| act(std::slice::from_ref(one))).collect(),
    }
}
