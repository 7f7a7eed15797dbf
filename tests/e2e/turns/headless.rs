//! Without a pane there is a log.

use super::{FakeDaemon, create_task, env_without_daemon, worker_turns};
use serde_json::json;
use std::path::PathBuf;

#[test]
fn headless_output_is_in_the_log() {
    let env = env_without_daemon();
    create_task(&env, "one", "echo term $TERM, color $NO_COLOR, tmux ${TMUX-none}; echo err >&2");
    let mut play = FakeDaemon::start(env, &worker_turns(), Some("state/own/logs/agents/survey/ann.log"));
    play.receive_idle(1);
    let log = play.env.read("state/own/logs/agents/survey/ann.log");
    assert_eq!(log, "── task 1: one\nterm dumb, color 1, tmux none\nerr\nTask 1 is done: one\nidle\n");
    assert_eq!(play.pane_output(), "", "nothing goes where the daemon writes");
    play.stop().shut_down();
}

#[test]
fn headless_agent_inherits_no_descriptors() {
    let env = env_without_daemon();
    create_task(&env, "look", "ls -l /proc/$$/fd >out/fds");
    let inherited = std::fs::File::create(env.path("out/inherited")).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let mut play = FakeDaemon::start(env, &worker_turns(), Some("logs/ann.log"));
    drop(inherited);
    play.receive_idle(1);
    let fds = std::fs::read_dir(format!("/proc/{}/fd", play.pid)).unwrap().flatten();
    let held: Vec<PathBuf> = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(held.len() > 3 && !held.iter().any(|path| path.ends_with("out/inherited")), "{held:#?}");
    let turn = play.env.read("out/fds");
    assert!(turn.contains("/dev/null") && !turn.contains("inherited"), "{turn}");
    play.stop().shut_down();
}

#[test]
fn headless_long_lived_agent_writes_the_log() {
    let env = env_without_daemon();
    let log = "state/own/logs/agents/survey/ann.log";
    let mut play = FakeDaemon::start(
        env,
        &json!({"argv": ["sh", "-c", "echo up $TERM; sleep 3600 & exit 3"]}),
        Some(log),
    );
    play.receive_until("it starts", |word| word["started"]["pid"].as_u64());
    let (env, ended) = play.finish();
    assert_eq!(ended, json!({"exit": 3}));
    assert!(env.read(log).starts_with("up dumb\n"), "{}", env.read(log));
    env.shut_down();
}
