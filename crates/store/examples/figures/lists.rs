//! The task list looked at and claimed from, beside a program that reads all of its files each time.

use crate::ground::team;
use crate::peer::{Peer, pairs};
use crate::{median, row};
use protocol::id::TaskId;
use protocol::name::AgentName;
use std::time::Duration;
use store::{NewTask, Planned};

/// How many tasks, and pairs: each of a pair takes one.
const LENGTHS: [(usize, usize); 3] = [(10, 5), (1_000, 31), (10_000, 7)];

pub(crate) fn lists_and_claims() {
    for (length, count) in LENGTHS {
        let (_dir, team) = team();
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
        let claims = pairs(count, |_| drop(tasks.claim(None, &lead).unwrap()), || peer.does("claim"));
        let figure = format!(
            "{:.1?}; {:.1?}; {:.0} ×",
            claims.ours[count / 2],
            claims.theirs[count / 2],
            claims.ratio
        );
        row(&format!("claim among {length} tasks: ours; Node; ratio"), &figure, "1 ms");
    }
}
