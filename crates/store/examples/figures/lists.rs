//! The task list looked at and claimed from, beside a program that reads all of its files each time.

use crate::daemon::Daemon;
use crate::ground::team;
use crate::peer::{Peer, pairs};
use crate::{median, row};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::TaskStatus;
use std::time::Duration;
use store::{NewTask, Planned, Tasks};

/// How many tasks, and pairs.
const LENGTHS: [(usize, usize); 3] = [(10, 31), (1_000, 31), (10_000, 15)];

pub(crate) fn lists_and_claims() {
    for (length, count) in LENGTHS {
        let (dir, team) = team();
        let (tasks, lead) = (team.tasks(), AgentName::lead());
        let task = |n: usize| Planned {
            task: NewTask::new(&format!("work on part {n} of the whole"), &lead),
            after: vec![],
        };
        tasks.create_all((0..length).map(task).collect()).unwrap();
        let directory = team.path().parent().unwrap().parent().unwrap().join("tasks/bench");
        let Some(mut peer) = Peer::at(&directory) else { return row("task list", "skipped: no node", "") };
        peer.does("list");
        // A look so soon after a change can't be sure of the time stamps.
        std::thread::park_timeout(Duration::from_millis(100));
        tasks.list_shared().unwrap();
        let lists = pairs(count, |_| drop(tasks.list_shared().unwrap()), || peer.does("list"));
        // As the daemon has it, which is told what is written.
        let one = [TaskId::parse("1").unwrap()];
        let told = median(101, |_| drop(tasks.list_changed(&one).unwrap()));
        let floor = median(count, |_| assert!(std::fs::read_dir(&directory).unwrap().count() >= length));
        let figure = format!(
            "{told:.1?}; {:.1?}; {:.1?}; {:.0} ×; {floor:.1?}",
            lists.ours[count / 2],
            lists.theirs[count / 2],
            lists.ratio
        );
        row(
            &format!(
                "list of {length} tasks: the daemon's, told of one; whoever is told of none; Node; ratio; their names read"
            ),
            &figure,
            "flat to 1,000",
        );
        let Some(daemon) = Daemon::at(dir.path()) else {
            return row("claim", "skipped: teamd is not built in this profile", "");
        };
        let mut theirs = || {
            let took = peer.does("claim");
            give_back(&tasks);
            daemon.next();
            took
        };
        let told = pairs(count, |_| drop(tasks.claim_told(&lead, || daemon.next()).unwrap()), &mut theirs);
        let alone = pairs(count, |_| drop(tasks.claim(None, &lead).unwrap()), theirs);
        row(
            &format!("claim among {length} tasks: beside teamd; by the files alone; Node; ratios"),
            &format!(
                "{:.1?}; {:.1?}; {:.1?}; {:.0} ×, {:.0} ×",
                told.ours[count / 2],
                alone.ours[count / 2],
                alone.theirs[count / 2],
                told.ratio,
                alone.ratio
            ),
            "1 ms",
        );
    }
}

/// What was taken, so that the next ones find as much.
fn give_back(tasks: &Tasks) {
    let begun = tasks.list().unwrap().into_iter().filter(|task| task.status == TaskStatus::InProgress);
    begun.for_each(|task| drop(tasks.release(&task.id, &AgentName::lead()).unwrap()));
}
