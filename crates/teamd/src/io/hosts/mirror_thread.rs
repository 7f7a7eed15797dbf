//! The thread that runs the jobs for the mirrors of one link.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::jobs::host_jobs::{HostEvent, MirrorJob};
use crate::io::files::event_log;
use crate::io::hosts::mirror_queue::MirrorQueue;
use crate::io::hosts::shared_mirror::SharedMirror;
use mirror::{Mirror, MirrorOutput, TaskCheck};
use protocol::control_socket::ConfirmTaskRequest;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::task::TaskStatus;
use protocol::team_and_member_names::TeamName;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Root, StateDir};

/// The longest pause before a failed job runs again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Starts the thread. It runs until the daemon ends or the host is forgotten. The directory
/// `state_dir` has the event log.
pub(super) fn start(
    mirror: SharedMirror,
    queue: Arc<MirrorQueue>,
    (root, state_dir): (Root, PathBuf),
) -> std::io::Result<()> {
    let run = move || {
        let mut has_failed = false;
        while let Some(job) = queue.pop() {
            match run_job(&mirror, &root, job.clone()) {
                Ok(()) => {
                    has_failed = false;
                    // After an error, the next job tries again.
                    send_events_left_in_log(&mirror, &state_dir)
                        .unwrap_or_else(|error| tracing::warn!("cannot send events of the log: {error}"));
                }
                Err(error) => {
                    let (job, reply) = prepare_retry(job, &error);
                    reply.into_iter().for_each(|event| mirror.reporter().report(event));
                    if !std::mem::replace(&mut has_failed, true) {
                        mirror.reporter().report(HostEvent::Failed(error));
                    }
                    queue.push_first_after_pause(job, RETRY_PAUSE);
                }
            }
        }
    };
    std::thread::Builder::new().name("mirror".to_owned()).spawn(run)?;
    Ok(())
}

/// Runs a job. Returns an error only if the job must run again. Other errors are reported to the
/// event loop.
pub(super) fn run_job(mirror: &SharedMirror, root: &Root, job: MirrorJob) -> Result<(), ErrorReport> {
    let plain = |output: MirrorOutput| ((), output);
    match job {
        MirrorJob::AddTeam { team, barrier } => {
            let added = mirror.update(
                |mirror| {
                    let mut output = mirror.add_team(&team)?;
                    output.items.extend(mirror.send_barrier(barrier).items);
                    Ok(((), output))
                },
                |()| None,
            );
            added.or_else(|error| {
                mirror.reporter().report(HostEvent::TeamNotAdded { team, error });
                Ok(())
            })
        }
        MirrorJob::RemoveTeam(team) => {
            mirror.update(|mirror| mirror.remove_team(&team).map(plain), |()| None)
        }
        MirrorJob::TakeTeam { client, team } => {
            let reply = |result| Some(HostEvent::TeamTaken { client: client?, result });
            let taken = mirror.update(|mirror| mirror.take_team(&team).map(plain), |()| reply(Ok(())));
            // The mirror has not begun to take the team. After any other error, the job runs again.
            match taken {
                Err(error) if error.kind == ErrorKind::Refused => {
                    reply(Err(error)).into_iter().for_each(|event| mirror.reporter().report(event));
                    Ok(())
                }
                other => other,
            }
        }
        MirrorJob::EndTeam(team) => mirror.update(|mirror| mirror.end_mirror(&team).map(plain), |()| None),
        MirrorJob::BeginMove { team, barrier } => {
            let begin = |mirror: &mut Mirror| mirror.begin_move(&team, barrier);
            run_move_step(mirror, &team, begin);
            Ok(())
        }
        MirrorJob::CancelMove(team) => mirror.update(
            |mirror| mirror.cancel_move(&team).map(plain),
            |()| Some(HostEvent::MoveCancelled(team.clone())),
        ),
        MirrorJob::OfferHome { team, usage } => {
            let offer = |mirror: &mut Mirror| mirror.offer_home(&team, usage);
            run_move_step(mirror, &team, offer);
            Ok(())
        }
        MirrorJob::EndTeams => mirror.update(|mirror| mirror.end_teams().map(plain), |()| None),
        MirrorJob::Compare { team, change } => {
            mirror.update(|mirror| mirror.handle_change(&team, &change).map(plain), |()| None)
        }
        MirrorJob::CompareAll => mirror.update(|mirror| mirror.compare_all().map(plain), |()| None),
        MirrorJob::SendBarrier(number) => {
            mirror.update(|mirror| Ok(((), mirror.send_barrier(number))), |()| None)
        }
        MirrorJob::NoteAccepted(number) => {
            let none = |()| ((), MirrorOutput::default());
            mirror.update(|mirror| mirror.note_accepted(number).map(none), |()| None)
        }
        MirrorJob::SendEvents { team, events } => {
            mirror.update(|mirror| mirror.send_events(&team, &events).map(plain), |()| None)
        }
        MirrorJob::SendBudget { team, budget } => {
            mirror.update(|mirror| mirror.send_budget(&team, &budget).map(plain), |()| None)
        }
        MirrorJob::NoteEventsLogged { team, number } => {
            let none = |()| ((), MirrorOutput::default());
            mirror.update(|mirror| mirror.note_events_logged(&team, number).map(none), |()| None)
        }
        MirrorJob::CheckTask { client, request } => {
            check_task(mirror, root, client, &request);
            Ok(())
        }
    }
}

/// Runs a step of a move. If it fails, the event loop cancels the move.
fn run_move_step(
    mirror: &SharedMirror,
    team: &TeamName,
    step: impl FnOnce(&mut Mirror) -> Result<MirrorOutput, ErrorReport>,
) {
    failpoint::hit("home.step");
    let result = mirror.update(|mirror| Ok(((), step(mirror)?)), |()| None);
    failpoint::hit("home.step-done");
    if let Err(error) = result {
        mirror.reporter().report(HostEvent::MoveFailed { team: team.clone(), error });
    }
}

/// Prepares a job that has failed with `error` for its next run. If a client waits for the job,
/// also returns a reply with the error, so that the client does not wait until the job succeeds.
pub(super) fn prepare_retry(job: MirrorJob, error: &ErrorReport) -> (MirrorJob, Option<HostEvent>) {
    match job {
        MirrorJob::CancelMove(ref team) => {
            let event = HostEvent::CancelFailed { team: team.clone(), error: error.clone() };
            (job, Some(event))
        }
        MirrorJob::TakeTeam { client: Some(client), team } => {
            let message = format!("cannot take {team} yet: {}", error.message);
            let error = ErrorReport::new(error.kind, message)
                .with_help("teamd tries again until it succeeds; has it? see: teamctl status");
            let event = HostEvent::TeamTaken { client, result: Err(error) };
            (MirrorJob::TakeTeam { client: None, team }, Some(event))
        }
        job => (job, None),
    }
}

/// Sends events for which the link had no place before.
fn send_events_left_in_log(mirror: &SharedMirror, state_dir: &Path) -> Result<(), ErrorReport> {
    let left = mirror.events_left_in_log();
    if left.is_empty() {
        return Ok(());
    }
    let events = event_log::read_events_after(&StateDir::open(state_dir)?, &left)?;
    left.keys().try_for_each(|team| {
        let events = events.get(team).map_or(&[][..], Vec::as_slice);
        mirror.update(|mirror| Ok(((), mirror.send_left_events(team, events)?)), |()| None)
    })
}

fn check_task(mirror: &SharedMirror, root: &Root, client: ConnId, request: &ConfirmTaskRequest) {
    let result = mirror.update(
        |mirror| mirror.check_task(&request.team, request.task),
        |check| {
            let result = match check {
                TaskCheck::Decided => check_owner(root, request).map(|()| TaskCheck::Decided),
                TaskCheck::Undecided => Ok(TaskCheck::Undecided),
            };
            Some(HostEvent::TaskChecked { client, result })
        },
    );
    if let Err(error) = result {
        mirror.reporter().report(HostEvent::TaskChecked { client, result: Err(error) });
    }
}

/// Checks that the task is in progress and that the member still owns it.
fn check_owner(root: &Root, request: &ConfirmTaskRequest) -> Result<(), ErrorReport> {
    let ConfirmTaskRequest { team, task: id, owner } = request;
    let task = root.team(team)?.tasks().get(id)?;
    match task.owner {
        Some(other) if other == *owner && task.status == TaskStatus::InProgress => Ok(()),
        Some(other) if other != *owner => Err(store::Error::TaskClaimed { id: *id, owner: other }.into()),
        _ => {
            let message = format!("cannot start task {id}: {owner} does not have it any more");
            Err(ErrorReport::new(ErrorKind::AlreadyExists, message)
                .with_help("take another: teamctl task list --available"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_that_takes_a_home_gets_the_first_error_and_the_job_runs_again() {
        let team = TeamName::parse("survey").unwrap();
        let error = ErrorReport::new(ErrorKind::Io, "no space left");
        let job = MirrorJob::TakeTeam { client: Some(3), team };
        let (job, reply) = prepare_retry(job, &error);
        let Some(HostEvent::TeamTaken { client: 3, result: Err(replied) }) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(
            (replied.kind, replied.message.as_str()),
            (ErrorKind::Io, "cannot take survey yet: no space left")
        );
        let (job, reply) = prepare_retry(job, &error);
        assert!(matches!(job, MirrorJob::TakeTeam { client: None, .. }) && reply.is_none());
    }
}
