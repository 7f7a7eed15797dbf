//! Checks turns in a pane: the state of their process, the size of their terminal, and the output
//! in the pane and its log.

use super::{FakeDaemon, create_task, env_without_daemon, worker_turns};
use harness::TestEnv;

#[test]
fn turn_has_a_clean_process_state() {
    let env = env_without_daemon();
    let dump = format!("{} dump out/dump; cp /proc/self/status out/signals", env.scripted_agent_path());
    create_task(&env, "look", &dump);
    let mut daemon = FakeDaemon::start_in_pane(env, &worker_turns());
    daemon.receive_idle(1);
    let dump = daemon.env.read("out/dump");
    let descriptors: Vec<&str> = dump.lines().filter(|line| line.starts_with("fd ")).collect();
    let others = descriptors.iter().filter(|line| {
        !line.contains("/dev/pts/") && !line.contains("/dev/null") && !line.contains("/proc/")
    });
    assert_eq!((others.count(), descriptors.len()), (0, 4), "{descriptors:#?}");
    assert!(!dump.contains("TEAMD_WAKE_FD"), "the wake socket is not passed to turns: {dump}");
    assert!(dump.contains("env TMUX_PANE=%") && dump.contains("env TASK_ID=1\n"), "{dump}");
    let status = daemon.env.read("out/signals");
    for set in ["SigBlk:", "SigIgn:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
        assert_eq!(u64::from_str_radix(line.trim(), 16).unwrap() & 0x7fff_ffff, 0, "{set} {line}");
    }
    daemon.stop().shut_down();
}

#[test]
fn turn_has_the_panes_size_and_its_output_is_shown() {
    let env = env_without_daemon();
    create_task(&env, "size", "stty size <&2; printf '\\033[31mred'");
    let mut daemon = FakeDaemon::start_in_pane(env, &worker_turns());
    daemon.receive_idle(1);
    let size =
        |daemon: &FakeDaemon| daemon.env.tmux(["display", "-p", "-t", "ann", "#{pane_height} #{pane_width}"]);
    let expected = format!("{}\r\n\u{1b}[31mred\u{1b}[0m\r\nTask 1 is done: size\r\nidle\r\n", size(&daemon));
    daemon.env.wait_until("the output of the turn is in the pane", || {
        daemon.pane_output().contains(&expected).then_some(())
    });
    daemon.env.tmux(["resize-window", "-t", "ann", "-x", "90", "-y", "20"]);
    create_task(&daemon.env, "size", "until [ \"$(stty size <&2)\" = '20 90' ]; do sleep 0.05; done");
    daemon.wake();
    daemon.receive_idle(2);
    assert_eq!(size(&daemon), "20 90");
    daemon.stop().shut_down();
}

#[test]
fn background_output_is_shown_between_turns() {
    let env = env_without_daemon();
    env.create_gate("out/go");
    create_task(&env, "serve", "(read line <out/go; echo the server says $line; touch out/said) &");
    let mut daemon = FakeDaemon::start(env, &worker_turns(), None);
    daemon.receive_idle(1);
    daemon.env.open_gate("out/go");
    daemon.env.wait_until("the background output is in the pane", || {
        daemon.pane_output().contains("the server says go\n").then_some(())
    });
    daemon.stop().shut_down();
}

#[test]
fn pane_output_is_logged_with_a_size_limit() {
    let env = TestEnv::new();
    let path = env.path("state/logs/ann.log");
    let script = format!("yes 0123456789abcde | head -c 23000000 | teamd-shim log {}", path.display());
    let status = env.command("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success());
    let size = |name: &str| env.path(name).metadata().unwrap().len();
    assert!(size("state/logs/ann.log") <= 10 << 20 && size("state/logs/ann.log.1") <= 10 << 20);
    assert!(env.read("state/logs/ann.log").ends_with("0123456789abcde\n"));
    assert_eq!(std::fs::read_dir(env.path("state/logs")).unwrap().count(), 2);
    env.shut_down();
}
