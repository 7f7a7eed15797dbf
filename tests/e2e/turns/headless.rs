//! Checks headless agents, which have no pane and write to a log.

use super::{FakeDaemon, create_task, env_without_daemon, worker_turns};
use serde_json::json;
use std::path::PathBuf;

#[test]
fn headless_output_is_in_the_log() {
    let env = env_without_daemon();
    create_task(&env, "one", "echo term $TERM, color $NO_COLOR, tmux ${TMUX-none}; echo err >&2");
    let mut daemon = FakeDaemon::start(env, &worker_turns(), Some("state/own/logs/agents/survey/ann.log"));
    daemon.receive_idle(1);
    let log = daemon.env.read("state/own/logs/agents/survey/ann.log");
    assert_eq!(log, "── task 1: one\nterm dumb, color 1, tmux none\nerr\nTask 1 is done: one\nidle\n");
    assert_eq!(daemon.pane_output(), "", "the shim's own stdout is empty");
    daemon.stop().shut_down();
}

#[test]
fn headless_agent_inherits_no_descriptors() {
    let env = env_without_daemon();
    create_task(&env, "look", "ls -l /proc/$$/fd >out/fds");
    let inherited = std::fs::File::create(env.path("out/inherited")).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let mut daemon = FakeDaemon::start(env, &worker_turns(), Some("logs/ann.log"));
    drop(inherited);
    daemon.receive_idle(1);
    let fds = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid)).unwrap().flatten();
    let targets: Vec<PathBuf> = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(targets.len() > 3 && !targets.iter().any(|path| path.ends_with("out/inherited")), "{targets:#?}");
    let turn = daemon.env.read("out/fds");
    assert!(turn.contains("/dev/null") && !turn.contains("inherited"), "{turn}");
    daemon.stop().shut_down();
}

#[test]
fn headless_long_lived_agent_writes_the_log() {
    let env = env_without_daemon();
    let log = "state/own/logs/agents/survey/ann.log";
    let mut daemon = FakeDaemon::start(
        env,
        &json!({"argv": ["sh", "-c", "echo up $TERM; sleep 3600 & exit 3"]}),
        Some(log),
    );
    daemon.receive_until("the agent has started", |message| message["started"]["pid"].as_u64());
    let (env, exit) = daemon.finish();
    assert_eq!(exit, json!({"exit": 3}));
    assert!(env.read(log).starts_with("up dumb\n"), "{}", env.read(log));
    env.shut_down();
}
