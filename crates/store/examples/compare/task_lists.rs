//! Measures reading and claiming tasks. The measurements are compared with a Node program that
//! reads all task files each time.

use crate::bench_team::team;
use crate::daemon::NextTaskDaemon;
use crate::node_baseline::{NodeProcess, time_pairs};
use crate::{median, row};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::TaskStatus;
use protocol::team_and_member_names::MemberName;
use std::time::Duration;
use store::{BatchTask, NewTask, Tasks};

/// Numbers of tasks, and of measured pairs.
const LENGTHS: [(usize, usize); 3] = [(10, 31), (1_000, 31), (10_000, 15)];

pub(crate) fn lists_and_claims() {
    for (length, count) in LENGTHS {
        let (dir, team) = team();
        let (tasks, lead) = (team.tasks(), MemberName::lead());
        let task = |n: usize| BatchTask {
            task: NewTask::new(&format!("work on part {n} of the whole"), &lead),
            blocked_by_index: vec![],
        };
        tasks.create_all((0..length).map(task).collect()).unwrap();
        let directory = team.path().parent().unwrap().parent().unwrap().join("tasks/bench");
        let Some(mut peer) = NodeProcess::start(&directory) else {
            return row("task list", "skipped: no node", "");
        };
        peer.run("list");
        // After a change, the cache can't trust timestamps for a short time.
        std::thread::park_timeout(Duration::from_millis(100));
        tasks.list_cached().unwrap();
        let lists = time_pairs(count, |_| drop(tasks.list_cached().unwrap()), || peer.run("list"));
        // The daemon knows which files have changed.
        let changed = [TaskId::parse("1").unwrap()];
        let after_change = median(101, |_| drop(tasks.list_after_changes(&changed).unwrap()));
        let floor = median(count, |_| assert!(std::fs::read_dir(&directory).unwrap().count() >= length));
        let figure = format!(
            "{after_change:.1?}; {:.1?}; {:.1?}; {:.0} ×; {floor:.1?}",
            lists.ours[count / 2],
            lists.theirs[count / 2],
            lists.ratio
        );
        row(
            &format!(
                "list of {length} tasks: with one known change; without known changes; Node; ratio; file names read"
            ),
            &figure,
            "flat to 1,000",
        );
        let Some(daemon) = NextTaskDaemon::start(dir.path()) else {
            return row("claim", "skipped: teamd is not built in this profile", "");
        };
        let mut theirs = || {
            let duration = peer.run("claim");
            release_all(&tasks);
            daemon.next_hint();
            duration
        };
        let with_hint = time_pairs(
            count,
            |_| drop(tasks.claim_with_hint(&lead, || daemon.next_hint()).unwrap()),
            &mut theirs,
        );
        let without_hint = time_pairs(count, |_| drop(tasks.claim(None, &lead).unwrap()), theirs);
        row(
            &format!("claim among {length} tasks: beside teamd; by the files alone; Node; ratios"),
            &format!(
                "{:.1?}; {:.1?}; {:.1?}; {:.0} ×, {:.0} ×",
                with_hint.ours[count / 2],
                without_hint.ours[count / 2],
                without_hint.theirs[count / 2],
                with_hint.ratio,
                without_hint.ratio
            ),
            "1 ms",
        );
    }
}

/// Releases the claimed tasks, so that the next measurement finds the same list.
fn release_all(tasks: &Tasks) {
    let in_progress = tasks.list().unwrap().into_iter().filter(|task| task.status == TaskStatus::InProgress);
    in_progress.for_each(|task| drop(tasks.release(&task.id, &MemberName::lead()).unwrap()));
}
