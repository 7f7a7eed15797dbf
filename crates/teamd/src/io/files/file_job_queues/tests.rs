use super::*;
use crate::core::jobs::file_jobs::TeamCreation;
use crate::core::roster::Roster;
use protocol::control_socket::CreateTeamRequest;
use protocol::team_and_member_names::MemberName;
use std::collections::BTreeMap;
use std::sync::Mutex;
use store::{Durability, Root};

fn roster(version: u32) -> FileJob {
    FileJob::SaveRoster(Roster { version, ..Roster::default() })
}

fn scan(team: &str) -> FileJob {
    FileJob::ScanRequests { team: TeamName::parse(team).unwrap() }
}

fn to_text(job: &FileJob) -> String {
    match job {
        FileJob::SaveRoster(roster) => roster.version.to_string(),
        FileJob::ScanRequests { team } => format!("scan {team}"),
        job => format!("{job:?}"),
    }
}

fn shared_thread_state() -> (tempfile::TempDir, Arc<SharedThreadState>) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(&dir.path().join("root"), dir.path(), Durability::Process).unwrap();
    (dir, Arc::new(SharedThreadState::new(root, BTreeMap::new())))
}

/// The queues of lanes that have no thread. A test takes the jobs from them.
type WaitingLanes = Arc<Mutex<HashMap<Lane, JobReceiver>>>;

fn waiting_lanes(shared: &Arc<SharedThreadState>) -> (JobSender, WaitingLanes) {
    let queues = WaitingLanes::default();
    let started_queues = Arc::clone(&queues);
    let start = move |lane, queue, _| {
        started_queues.lock().unwrap().insert(lane, queue);
        std::thread::Builder::new().spawn(|| {})
    };
    (JobSender::new(Arc::clone(shared), start), queues)
}

fn take_queue(queues: &WaitingLanes, lane: &Lane) -> JobReceiver {
    queues.lock().unwrap().remove(lane).unwrap()
}

#[test]
fn newest_waiting_roster_takes_the_place_of_the_oldest() {
    let (_dir, shared) = shared_thread_state();
    let (mut jobs, queues) = waiting_lanes(&shared);
    for job in [roster(1), FileJob::ProbeWatcher, roster(2), FileJob::ListTeams, roster(3)] {
        jobs.push(job);
    }
    jobs.flush();
    let mut queue = take_queue(&queues, &Lane::Daemon);
    assert_eq!(queue.next().as_ref().map(to_text).as_deref(), Some("3"));
    // A roster that is queued afterwards gets a new place.
    jobs.push(roster(4));
    jobs.finish();
    assert_eq!(queue.map(|job| to_text(&job)).collect::<Vec<_>>(), ["ProbeWatcher", "ListTeams", "4"]);
}

#[test]
fn next_if_keeps_a_rejected_job_and_never_blocks() {
    let (_dir, shared) = shared_thread_state();
    let (mut jobs, queues) = waiting_lanes(&shared);
    jobs.start_daemon_lane().unwrap();
    let mut queue = take_queue(&queues, &Lane::Daemon);
    assert!(queue.next_if(|_| true).is_none());
    jobs.push(FileJob::ProbeWatcher);
    jobs.push(roster(1));
    jobs.flush();
    assert!(queue.next_if(|job| matches!(job, FileJob::ListTeams)).is_none());
    jobs.push(roster(2));
    jobs.flush();
    let probe = queue.next_if(|job| matches!(job, FileJob::ProbeWatcher));
    assert!(matches!(probe, Some(FileJob::ProbeWatcher)));
    assert_eq!(queue.next_if(|_| true).as_ref().map(to_text).as_deref(), Some("2"));
    jobs.push(FileJob::ProbeWatcher);
    jobs.flush();
    assert!(queue.next_if(|_| false).is_none());
    jobs.finish();
    assert_eq!(queue.count(), 1);
}

/// Runs the jobs on real threads. A scan of the team `stuck` ends only after `release`.
#[test]
fn stuck_team_delays_neither_other_teams_nor_the_daemon() {
    let (_dir, shared) = shared_thread_state();
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let (done, results) = channel();
    let start = {
        let shared = Arc::clone(&shared);
        move |_, queue: JobReceiver, _| {
            let (shared, released, done) = (Arc::clone(&shared), Arc::clone(&released), done.clone());
            std::thread::Builder::new().spawn(move || {
                let mut queue = queue;
                while let Some(job) = queue.next() {
                    queue.wait_for_saves();
                    if to_text(&job) == "scan stuck" {
                        released.lock().unwrap().recv().ok();
                    }
                    done.send(to_text(&job)).unwrap();
                    // Lets the other threads go on, so the result comes first.
                    if job.is_save() {
                        shared.count_save();
                    }
                }
            })
        }
    };
    let mut jobs = JobSender::new(Arc::clone(&shared), start);
    for job in [scan("stuck"), roster(1), scan("other"), FileJob::ProbeWatcher] {
        jobs.push(job);
    }
    jobs.flush();
    let mut first_results: Vec<String> = results.iter().take(3).collect();
    assert!(
        first_results.iter().position(|job| job == "1")
            < first_results.iter().position(|job| job == "scan other")
    );
    first_results.sort();
    assert_eq!(first_results, ["1", "ProbeWatcher", "scan other"]);
    drop(release);
    jobs.finish();
    assert_eq!(results.iter().collect::<Vec<_>>(), ["scan stuck"]);
}

#[test]
fn new_lane_begins_after_the_closed_lane_of_the_same_team() {
    let (_dir, shared) = shared_thread_state();
    let predecessors = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&predecessors);
    let start = move |_, queue: JobReceiver, predecessor: Option<JoinHandle<()>>| {
        seen.lock().unwrap().push(predecessor.is_some());
        std::thread::Builder::new().spawn(move || {
            predecessor.into_iter().for_each(|thread| thread.join().unwrap());
            queue.for_each(drop);
        })
    };
    let mut jobs = JobSender::new(Arc::clone(&shared), start);
    let team = TeamName::parse("survey").unwrap();
    for _ in 0..2 {
        jobs.close_lane(&team);
        jobs.push(scan("survey"));
        jobs.flush();
        assert!(jobs.lanes.is_empty());
    }
    jobs.finish();
    assert_eq!(*predecessors.lock().unwrap(), [false, true]);
}

#[test]
fn each_job_of_a_team_is_in_the_lane_of_that_team() {
    let team = TeamName::parse("survey").unwrap();
    let create = CreateTeamRequest::new(team.clone(), "/".into());
    let name = MemberName::lead();
    let jobs = [
        FileJob::WriteActivity { team: team.clone(), name, is_active: true },
        FileJob::CreateTeam(Box::new(TeamCreation::new(1, create, 1))),
        scan("survey"),
    ];
    assert!(jobs.iter().all(|job| job.lane() == Lane::Team(team.clone())));
    assert_eq!(roster(1).lane(), Lane::Daemon);
}
