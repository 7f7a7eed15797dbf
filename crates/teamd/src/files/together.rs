//! Members who come, or go, at once. Their config is one file: those who wait for the thread behind one another are put on the
//! team, or taken off it, in one change of it, and each is answered for itself, as if it had been alone.

use super::job::{Enrolled, FileDone, FileJob};
use super::member::{complete_tracking, is_on, tell_lead};
use super::{Files, or_fault};
use crate::roster::{Record, Shared, SpawnId};
use protocol::error::ErrorReport;
use protocol::name::AgentName;
use protocol::team_config::Member;
use store::{Error, Team};

/// One who is to be put on its team: see the job.
pub(super) struct Coming {
    pub(super) spawn: SpawnId,
    pub(super) record: Shared,
    pub(super) again: bool,
    pub(super) at: u64,
}

/// One whose name is free and whose inbox is ready.
pub(super) struct Ready {
    pub(super) team: Team,
    pub(super) member: Member,
    pub(super) lead_session: String,
}

/// A job, and those behind it that are done with it; `next_if` takes what waits next, if it is wanted. What stands between
/// them, and is `aside` of the teams, is handed over first, so that it comes before all that it stood ahead of.
pub(crate) fn gather(
    first: FileJob,
    mut next_if: impl FnMut(&dyn Fn(&FileJob) -> bool) -> Option<FileJob>,
    mut aside: impl FnMut(FileJob),
) -> Vec<FileJob> {
    let mut all = vec![first];
    while let Some(job) = next_if(&|job| goes_with(&all, job)) {
        match is_aside(&job) {
            true => aside(job),
            false => all.push(job),
        }
    }
    all
}

fn goes_with(all: &[FileJob], job: &FileJob) -> bool {
    let Some(first) = all.first().and_then(of_a_member) else { return false };
    let is_like = |record: &Record| {
        let same = |other: &FileJob| of_a_member(other).is_some_and(|other| other.name == record.name);
        record.team == first.team && !all.iter().any(same)
    };
    let same_kind = all.first().is_some_and(|it| std::mem::discriminant(it) == std::mem::discriminant(job));
    is_aside(job) || same_kind && of_a_member(job).is_some_and(is_like)
}

/// Who comes or goes by this job.
fn of_a_member(job: &FileJob) -> Option<&Record> {
    match job {
        FileJob::Register { record, .. } | FileJob::Farewell { record } => Some(record),
        _ => None,
    }
}

/// It touches our own files alone, and may be there before what was asked ahead of it: see [`super::queue`].
pub(super) fn is_aside(job: &FileJob) -> bool {
    matches!(job, FileJob::Roster(_) | FileJob::Environment { .. } | FileJob::Heard { .. } | FileJob::Log(_))
}

impl Files {
    /// What [`gather`] has found.
    pub(super) fn members_done(&mut self, all: Vec<FileJob>) -> Vec<FileDone> {
        let (mut coming, mut going) = (Vec::new(), Vec::new());
        for job in all {
            match job {
                FileJob::Register { spawn, record, again, at } => {
                    coming.push(Coming { spawn, record, again, at });
                }
                FileJob::Farewell { record } => going.push(record),
                other => return self.job(other).into_iter().collect(),
            }
        }
        let mut done = self.registered(&coming);
        done.extend(self.farewelled(&going));
        done
    }

    /// Inboxes first: an agent that is on the team can be written to.
    fn registered(&mut self, coming: &[Coming]) -> Vec<FileDone> {
        let ready: Vec<Result<Ready, ErrorReport>> = coming.iter().map(|one| self.ready(one)).collect();
        let members: Vec<Member> = ready.iter().flatten().map(|one| one.member.clone()).collect();
        let team = ready.iter().flatten().next().map(|one| one.team.clone());
        let mut added = team.map(|team| add_all(&team, &members)).unwrap_or_default().into_iter();
        let mut enrolled = |one: &Coming, ready: Result<Ready, ErrorReport>| {
            let Ready { team, lead_session, .. } = ready?;
            added.next().expect("one for each who is ready").map_err(ErrorReport::from)?;
            let task = team.tasks().create_internal(&one.record.name, &one.record.prompt)?;
            Ok(Enrolled { tracking: task.id, lead_session })
        };
        let results = coming.iter().zip(ready);
        results
            .map(|(one, ready)| FileDone::Registered {
                spawn: one.spawn.clone(),
                result: enrolled(one, ready),
            })
            .collect()
    }

    fn farewelled(&mut self, going: &[Shared]) -> Vec<FileDone> {
        let approved: Vec<Result<bool, Error>> = going.iter().map(|it| self.has_approved(it)).collect();
        let ready: Vec<Result<(), ErrorReport>> =
            going.iter().map(|record| self.may_depart(record)).collect();
        let able = going.iter().zip(&approved).zip(&ready).filter(|(_, ready)| ready.is_ok());
        // Where nobody can tell whether its lead has its word, that is not told now: it is all done once more.
        let able: Vec<(&Record, bool)> =
            able.map(|((it, approved), _)| (&**it, matches!(approved, Ok(false)))).collect();
        let mut taken = self.taken_off(&able).into_iter();
        let all = going.iter().zip(approved).zip(ready);
        all.map(|((record, approved), ready)| {
            let taken = ready.and_then(|()| or_fault(taken.next().expect("one for each who may depart")));
            let approved = or_fault(approved);
            let left = taken.and(approved.clone().map(drop));
            self.departed(record, approved.unwrap_or(false), left.err())
        })
        .collect()
    }

    /// Where there is no such team there is nothing to be taken off.
    fn taken_off(&mut self, all: &[(&Record, bool)]) -> Vec<Result<(), Error>> {
        let Some((first, _)) = all.first() else { return Vec::new() };
        match self.team(&first.team) {
            Ok(team) => take_off(&team, all).into_iter().map(unless_gone).collect(),
            Err(error) if all.len() == 1 => vec![unless_gone(Err(error))],
            Err(_) => all.iter().flat_map(|one| self.taken_off(std::slice::from_ref(one))).collect(),
        }
    }
}

fn unless_gone(taken: Result<(), Error>) -> Result<(), Error> {
    match taken {
        Err(Error::NoSuchTeam { .. }) => Ok(()),
        taken => taken,
    }
}

/// A name that somebody else's member has got meanwhile is taken, although the roster does not know it.
fn add_all(team: &Team, members: &[Member]) -> Vec<Result<(), Error>> {
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
fn take_off(team: &Team, all: &[(&Record, bool)]) -> Vec<Result<(), Error>> {
    let untold: Vec<&Record> = all.iter().filter(|(_, tells)| *tells).map(|(it, _)| *it).collect();
    let mut told = together(&untold, |some| tell_lead(team, some)).into_iter();
    let tracked: Vec<Result<bool, Error>> = all
        .iter()
        .map(|(record, _)| match is_on(team, record)? {
            true => complete_tracking(team, record).map(|()| true),
            false => Ok(false),
        })
        .collect();
    let ours = all.iter().zip(&tracked).filter(|(_, tracked)| matches!(tracked, Ok(true)));
    let names: Vec<AgentName> = ours.map(|((record, _), _)| record.name.clone()).collect();
    let mut removed = together(&names, |some| team.remove_members(some)).into_iter();
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
fn together<T>(all: &[T], act: impl Fn(&[T]) -> Result<(), Error>) -> Vec<Result<(), Error>> {
    match if all.is_empty() { Ok(()) } else { act(all) } {
        Ok(()) => all.iter().map(|_| Ok(())).collect(),
        Err(error) if all.len() == 1 => vec![Err(error)],
        Err(_) => all.iter().map(|one| act(std::slice::from_ref(one))).collect(),
    }
}
