//! The task list looked at and claimed from, beside a program that reads all of its files each time.

use crate::daemon::Daemon;
use crate::ground::team;
use crate::peer::{Peer, pairs};
use crate::{median, row, timed};
use protocol::id::TaskId;
use protocol::name::AgentName;
use std::time::Duration;
use store::{NewTask, Planned};

/// How many tasks, and rounds, of which each takes three.
const LENGTHS: [(usize, usize); 3] = [(10, 3), (1_000, 31), (10_000, 7)];

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
        let [mut told, mut alone, mut theirs] = [const { Vec::new() }; 3];
        for _ in 0..count {
            told.push(timed(|| drop(tasks.claim_told(&lead, || daemon.next()).unwrap())));
            alone.push(timed(|| drop(tasks.claim(None, &lead).unwrap())));
            theirs.push(peer.does("claim"));
        }
        let [told, alone, theirs] = [told, alone, theirs].map(|mut times| {
            times.sort();
            times[count / 2]
        });
        row(
            &format!("claim among {length} tasks: beside teamd, by the files alone; Node"),
            &format!("{told:.1?}, {alone:.1?}; {theirs:.1?}"),
            "1 ms",
        );
    }
}
