//! The lane (the queue) of each file job, and which jobs run together as a batch.
//!
//! Each team has a lane, and the daemon's own files have one. The jobs of a lane run in order.
//! Lanes run at the same time, so a team whose files are locked or damaged does not delay other
//! teams. Only saves of rosters and environments delay other lanes: a job of a team waits for all
//! saves that were queued before the job.

use crate::core::jobs::file_jobs::FileJob;
use crate::core::roster::agent_record::AgentRecord;
use protocol::team_and_member_names::TeamName;

/// The queue in which a job waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    /// Files in the state directory that do not belong to one team, and lists of all teams.
    Daemon,
    Team(TeamName),
}

impl FileJob {
    /// The lane of the job.
    pub(crate) fn lane(&self) -> Lane {
        let team = match self {
            FileJob::SaveRoster(_)
            | FileJob::AppendEvent(_)
            | FileJob::SaveEnvironment { .. }
            | FileJob::ReadExitReport { .. }
            | FileJob::AwaitLogged { .. }
            | FileJob::AwaitLoggedForMirror { .. }
            | FileJob::ListTeams
            | FileJob::ReplyWhenSaved { .. }
            | FileJob::ReadOutputTimes { .. }
            | FileJob::ProbeWatcher
            | FileJob::RescanFiles { .. }
            | FileJob::AcknowledgeExit { .. }
            | FileJob::AwaitStopRecorded { .. }
            | FileJob::ConfirmWorktreeRecorded { .. } => return Lane::Daemon,
            FileJob::RegisterMember { record, .. } | FileJob::DeregisterMember { record } => {
                &record.request.team
            }
            FileJob::CreateTeam(creation) => &creation.name,
            FileJob::AppendToRecord(batch) => &batch.team,
            FileJob::ApplyModeChange { change, .. } => &change.team,
            FileJob::SavePolicy { request, .. } => &request.team,
            FileJob::CheckDeletable { request, .. } | FileJob::DeleteTeam { request, .. } => &request.team,
            FileJob::SendShutdownRequest { team, .. }
            | FileJob::ReadShutdownAnswers { team, .. }
            | FileJob::ScanTasks { team, .. }
            | FileJob::ScanInbox { team, .. }
            | FileJob::FindMissingMessages { team }
            | FileJob::FindTeam { team, .. }
            | FileJob::ScanRequests { team }
            | FileJob::WriteAnswer { team, .. }
            | FileJob::WriteMode { team, .. }
            | FileJob::WriteActivity { team, .. }
            | FileJob::CheckConfig { team, .. }
            | FileJob::WriteHiddenPanes { team, .. }
            | FileJob::WriteLeadSession { team, .. } => team,
        };
        Lane::Team(team.clone())
    }

    /// Whether later jobs of all teams wait for this job.
    pub(crate) fn is_save(&self) -> bool {
        matches!(self, FileJob::SaveRoster(_) | FileJob::SaveEnvironment { .. })
    }

    /// Whether the job reads or writes below the root.
    pub(crate) fn uses_root(&self) -> bool {
        match self.lane() {
            Lane::Team(_) => !matches!(self, FileJob::AppendToRecord(_)),
            Lane::Daemon => {
                matches!(self, FileJob::ListTeams | FileJob::ProbeWatcher | FileJob::RescanFiles { .. })
            }
        }
    }
}

/// Collects the jobs that run as one batch with the job `first`. A batch consists of registrations,
/// or of deregistrations, of different members of one team. `next_if` removes the next job of the
/// lane and returns it, if the predicate accepts this job.
pub(crate) fn collect_batch(
    first: FileJob,
    mut next_if: impl FnMut(&dyn Fn(&FileJob) -> bool) -> Option<FileJob>,
) -> Vec<FileJob> {
    let mut batch = vec![first];
    while let Some(job) = next_if(&|job| belongs_to_batch(&batch, job)) {
        batch.push(job);
    }
    batch
}

fn belongs_to_batch(batch: &[FileJob], job: &FileJob) -> bool {
    let is_same_kind =
        batch.first().is_some_and(|first| std::mem::discriminant(first) == std::mem::discriminant(job));
    let has_same_name = |record: &AgentRecord| {
        batch.iter().filter_map(member_of).any(|other| other.request.name == record.request.name)
    };
    is_same_kind && member_of(job).is_some_and(|record| !has_same_name(record))
}

/// The member that the job registers or deregisters.
fn member_of(job: &FileJob) -> Option<&AgentRecord> {
    match job {
        FileJob::RegisterMember { record, .. } | FileJob::DeregisterMember { record } => Some(record),
        _ => None,
    }
}
