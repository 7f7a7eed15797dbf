//! Twenty daemons are started at once, again and again, beside what a killed one has left: its socket, its lock, its
//! session. One of them serves, the others say who it is and end with 69.
//!
//! `STARTS=n` says how many rounds.

use harness::{House, figure, rounds};
use std::process::{Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// At once.
const MANY: usize = 20;
/// Houses side by side: a daemon that finds another waits for the end of that one, for as long as two seconds.
const HOUSES: u64 = 5;
/// Longer than any start takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// As many daemons as that; each is told with its pid when it ends.
fn start(house: &House) -> (Vec<u32>, Receiver<(u32, Output)>) {
    let (tell, ended) = channel();
    let one = |_| {
        let teamd = house.teamd().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (pid, tell) = (teamd.id(), tell.clone());
        std::thread::spawn(move || tell.send((pid, teamd.wait_with_output().unwrap())));
        pid
    };
    ((0..MANY).map(one).collect(), ended)
}

fn round(house: &House) {
    let (mut pids, ended) = start(house);
    let mut refused = Vec::new();
    for _ in 1..MANY {
        let (pid, output) = ended.recv_timeout(PATIENCE).unwrap();
        pids.retain(|other| *other != pid);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(69), "{said}");
        refused.push(said);
    }
    let one = pids[0];
    house.until_answered();
    assert_eq!(house.daemon(), one);
    let named = refused.iter().filter(|said| said.contains(&format!("pid {one}"))).count();
    assert_eq!(named, MANY - 1, "each says who it is that serves: {refused:#?}");
    house.kill_9(one);
    let (pid, _) = ended.recv_timeout(PATIENCE).unwrap();
    assert_eq!(pid, one);
}

#[test]
fn of_twenty_daemons_that_start_at_once_one_serves_whatever_a_killed_one_has_left() {
    let each = rounds("STARTS", 50).div_ceil(HOUSES);
    std::thread::scope(|scope| {
        for _ in 0..HOUSES {
            scope.spawn(move || {
                let house = House::empty();
                (0..each).for_each(|_| round(&house));
                house.start_daemon();
                house.end();
            });
        }
    });
    figure("double-starts", each * HOUSES);
}
