//! Registers or deregisters several members of a team with one change of config.json.
//!
//! If several jobs that register members of one team follow each other in the queue, they run as
//! one batch. The same is true for jobs that deregister members. Each job still has its own result,
//! as if it had run alone.

use crate::core::jobs::file_jobs::{FileJob, Registration};
use crate::core::jobs::file_results::FileResult;
use crate::core::roster::agent_record::{AgentRecord, SharedRecord};
use crate::core::stop_and_exit_of_spawn::ShutdownApproval;
use crate::io::files::files_thread::FilesThread;
use crate::io::files::notify_lead_of_exits::notify_lead;
use crate::io::files::prepare_and_finish_registration::{
    PendingRegistration, PreparedRegistration, complete_tracking_task, is_registered,
};
use crate::io::files::run_file_jobs::to_error;
use crate::io::files::send_shutdown_requests_and_read_answers::has_open_request;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::Member;
use store::{Error, Team};

/// A member to deregister.
struct Deregistration<'a> {
    record: &'a AgentRecord,
    /// Whether the lead gets a message about the exit.
    notifies_lead: bool,
}

impl FilesThread {
    /// Runs a batch of jobs and returns their results. A batch is several registrations or several
    /// deregistrations in one team, or one job of any other kind.
    pub(super) fn run_member_batch(&mut self, batch: Vec<FileJob>) -> Vec<FileResult> {
        let (mut registrations, mut deregistrations) = (Vec::new(), Vec::new());
        for job in batch {
            match job {
                FileJob::RegisterMember { record, at } => {
                    registrations.push(PendingRegistration { record, at });
                }
                FileJob::DeregisterMember { record } => deregistrations.push(record),
                other => return self.run_job(other).into_iter().collect(),
            }
        }
        let mut results = self.register_all(&registrations);
        results.extend(self.deregister_all(&deregistrations));
        results
    }

    /// Registers members of one team. Their inboxes are prepared first, because other programs may
    /// send messages to a member as soon as the member is in config.json.
    fn register_all(&mut self, pending: &[PendingRegistration]) -> Vec<FileResult> {
        let prepared: Vec<Result<PreparedRegistration, ErrorReport>> =
            pending.iter().map(|registration| self.prepare_registration(registration)).collect();
        let members: Vec<Member> = prepared.iter().flatten().map(|ready| ready.member.clone()).collect();
        let team = prepared.iter().flatten().next().map(|ready| ready.team.clone());
        let mut added = team.map(|team| add_members(&team, &members)).unwrap_or_default().into_iter();
        let mut finish = |registration: &PendingRegistration,
                          prepared: Result<PreparedRegistration, ErrorReport>| {
            let PreparedRegistration { team, lead_session, .. } = prepared?;
            added.next().expect("one result per prepared member").map_err(ErrorReport::from)?;
            let request = &registration.record.request;
            let task = team.tasks().create_internal(&request.name, &request.prompt)?;
            Ok(Registration { tracking_task: task.id, lead_session })
        };
        let results = pending.iter().zip(prepared);
        results
            .map(|(registration, prepared)| FileResult::MemberRegistered {
                spawn: registration.record.spawn_id.clone(),
                result: finish(registration, prepared),
            })
            .collect()
    }

    /// Deregisters members of one team.
    fn deregister_all(&mut self, records: &[SharedRecord]) -> Vec<FileResult> {
        let given_approvals = to_error(self.read_approvals(records));
        let approval = |record: &SharedRecord| match &given_approvals {
            Ok(given_approvals) => Ok(given_approvals.get(&record.request.name).copied().unwrap_or_default()),
            Err(error) if has_open_request(record) => Err(error.clone()),
            Err(_) => Ok(ShutdownApproval::NotGiven),
        };
        let approvals: Vec<Result<ShutdownApproval, ErrorReport>> = records.iter().map(approval).collect();
        let saved: Vec<Result<(), ErrorReport>> =
            records.iter().map(|record| self.check_exit_saved(record)).collect();
        let removable = records.iter().zip(&approvals).zip(&saved).filter(|(_, saved)| saved.is_ok());
        // If it is unknown whether a member approved its own shutdown, the lead is not notified
        // now. The deregistration then fails, and is repeated later.
        let removable: Vec<Deregistration> = removable
            .map(|((record, approval), _)| Deregistration {
                record,
                notifies_lead: matches!(approval, Ok(ShutdownApproval::NotGiven)),
            })
            .collect();
        let mut removed = self.remove_from_team(&removable).into_iter();
        let records_with_results = records.iter().zip(approvals).zip(saved);
        records_with_results
            .map(|((record, approval), saved)| {
                let removed =
                    saved.and_then(|()| to_error(removed.next().expect("one result per removable member")));
                let result = removed.and(approval.clone().map(drop));
                self.finish_deregistration(record, approval.unwrap_or_default(), result.err())
            })
            .collect()
    }

    /// Removes members of one team. If the team cannot be opened, tries again for each member
    /// alone, so that each member has its own result. If the team does not exist, the members count
    /// as removed.
    fn remove_from_team(&mut self, members: &[Deregistration]) -> Vec<Result<(), Error>> {
        let Some(first) = members.first() else { return Vec::new() };
        match self.open_team(&first.record.request.team) {
            Ok(team) => remove_members(&team, members).into_iter().map(ignore_missing_team).collect(),
            Err(error) if members.len() == 1 => vec![ignore_missing_team(Err(error))],
            Err(_) => members
                .iter()
                .flat_map(|member| self.remove_from_team(std::slice::from_ref(member)))
                .collect(),
        }
    }
}

fn ignore_missing_team(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::NoSuchTeam { .. }) => Ok(()),
        result => result,
    }
}

/// Adds members to config.json. Returns one result per member.
///
/// # Errors
///
/// The result of a member is `AlreadyExists` if config.json has a member with this name from
/// another program.
fn add_members(team: &Team, members: &[Member]) -> Vec<Result<(), Error>> {
    let name_taken = |member: &Member| Error::AlreadyExists { what: format!("member {}", member.name) };
    match team.add_missing_members(members) {
        Ok(added) => {
            let is_added = |member: &Member| added.contains(&member.name);
            members
                .iter()
                .map(|member| if is_added(member) { Ok(()) } else { Err(name_taken(member)) })
                .collect()
        }
        Err(error) if members.len() == 1 => vec![Err(error)],
        Err(_) => members.iter().map(|member| team.add_member(member)).collect(),
    }
}

/// Notifies the lead of the exits, completes the internal tasks that track the members, and removes
/// the members from config.json.
///
/// If one step fails, the other steps still run. For example, a damaged inbox of the lead does not
/// keep a member in config.json. All steps can be repeated. If an entry of config.json has the name
/// of a member but belongs to another spawn, the entry is not removed.
fn remove_members(team: &Team, members: &[Deregistration]) -> Vec<Result<(), Error>> {
    let to_report: Vec<&AgentRecord> =
        members.iter().filter(|member| member.notifies_lead).map(|member| member.record).collect();
    let mut notified = run_together_or_each(&to_report, |records| notify_lead(team, records)).into_iter();
    let completed: Vec<Result<bool, Error>> = members
        .iter()
        .map(|member| match is_registered(team, member.record)? {
            true => complete_tracking_task(team, member.record).map(|()| true),
            false => Ok(false),
        })
        .collect();
    let registered = members.iter().zip(&completed).filter(|(_, completed)| matches!(completed, Ok(true)));
    let names: Vec<MemberName> = registered.map(|(member, _)| member.record.request.name.clone()).collect();
    let mut removed = run_together_or_each(&names, |names| team.remove_members(names)).into_iter();
    let results = members.iter().zip(completed).map(|(member, completed)| {
        let notified = if member.notifies_lead {
            notified.next().expect("one result per reported member")
        } else {
            Ok(())
        };
        notified.and(completed.and_then(|is_registered| match is_registered {
            true => removed.next().expect("one result per registered member"),
            false => Ok(()),
        }))
    });
    results.collect()
}

/// Calls `action` once with all items. If that call fails, calls `action` again for each item
/// alone, so that each item has its own result. A single item is tried twice too, because the
/// second attempt may succeed.
fn run_together_or_each<T>(
    items: &[T],
    action: impl Fn(&[T]) -> Result<(), Error>,
) -> Vec<Result<(), Error>> {
    match if items.is_empty() { Ok(()) } else { action(items) } {
        Ok(()) => items.iter().map(|_| Ok(())).collect(),
        Err(_) => items.iter().map(|item| action(std::slice::from_ref(item))).collect(),
    }
}
