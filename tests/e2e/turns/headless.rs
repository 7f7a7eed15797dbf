//! Without a pane there is a log.

use super::{Play, house, task, worker};
use serde_json::json;
use std::path::PathBuf;

#[test]
fn without_a_pane_everything_is_in_the_log() {
    let house = house();
    task(&house, "one", "echo term $TERM, color $NO_COLOR, tmux ${TMUX-none}; echo err >&2");
    let mut play = Play::start(house, &worker(), Some("state/own/logs/agents/survey/ann.log"));
    play.idle(1);
    let log = play.house.read("state/own/logs/agents/survey/ann.log");
    assert_eq!(log, "── task 1: one\nterm dumb, color 1, tmux none\nerr\nTask 1 is done: one\nidle\n");
    assert_eq!(play.pane(), "", "nothing goes where the daemon writes");
    play.end().end();
}

#[test]
fn without_a_pane_no_descriptor_of_the_daemon_lives_on() {
    let house = house();
    task(&house, "look", "ls -l /proc/$$/fd >out/fds");
    let inherited = std::fs::File::create(house.path("out/inherited")).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let mut play = Play::start(house, &worker(), Some("logs/ann.log"));
    drop(inherited);
    play.idle(1);
    let fds = std::fs::read_dir(format!("/proc/{}/fd", play.pid)).unwrap().flatten();
    let held: Vec<PathBuf> = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(held.len() > 3 && !held.iter().any(|path| path.ends_with("out/inherited")), "{held:#?}");
    let turn = play.house.read("out/fds");
    assert!(turn.contains("/dev/null") && !turn.contains("inherited"), "{turn}");
    play.end().end();
}

#[test]
fn an_agent_for_life_without_a_pane_has_its_output_in_the_log_too() {
    let house = house();
    let log = "state/own/logs/agents/survey/ann.log";
    let mut play =
        Play::start(house, &json!({"argv": ["sh", "-c", "echo up $TERM; sleep 3600 & exit 3"]}), Some(log));
    play.until("it starts", |word| word["started"]["pid"].as_u64());
    let (house, ended) = play.ends();
    assert_eq!(ended, json!({"exit": 3}));
    assert!(house.read(log).starts_with("up dumb\n"), "{}", house.read(log));
    house.end();
}
