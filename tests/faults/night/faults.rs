//! Kills the daemon, the tmux server and the run, and reboots the machine. Each fault happens while tasks
//! are in progress, and a message is sent before the next daemon runs.

use super::evening::{release_and_wait, wait_for_notice};
use super::messages::{WORKER_NOTE, send, wait_until_exchange_pauses};
use super::records::{recorded_keys, wait_until_done};
use super::team::{
    PLANNER, UNRESTARTED, WORKERS, WORKTREE_MEMBERS, run_printed_command, running_member,
    start_printed_command, stop_holding, wait_until_held,
};
use harness::{TaggedProcesses, TestEnv};
use std::process::Child;

/// Kills the daemon. The run starts it again, and no turn is disturbed.
pub(super) fn kill_daemon(env: &TestEnv) {
    for key in ["c1", "f2", "m1"] {
        wait_until_held(env, key, 1);
    }
    kill_and_wait(env, env.daemon_pid());
    send(env, "cat", "note without-daemon");
    wait_until_running(env, &all_members());
    release_and_wait(env, &["c1", "f2"]);
}

/// Kills the tmux server, and with it the daemon and all members with panes. The run starts them again,
/// except the member without a restart policy: the user resumes it with the command that `status` prints.
pub(super) fn kill_tmux_server(env: &TestEnv) {
    for key in ["c2", "h2", "a3", "g2", "w1"] {
        wait_until_held(env, key, 1);
    }
    wait_until_exchange_pauses(env);
    ["c2", "h2", "m1"].iter().for_each(|key| stop_holding(env, key));
    kill_and_wait(env, env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    send(env, "cat", "note without-tmux");
    let restarted: Vec<&str> = all_members().into_iter().filter(|name| *name != UNRESTARTED).collect();
    wait_until_running(env, &restarted);
    wait_until_done(env, &["c2", "h2"]);
    wait_for_notice(env, ["wim@night is suspended", "1 member is suspended"]);
    let status = env.teamctl(["status"]).expect_success();
    run_printed_command(env, printed_command(&status, "1 member is suspended; resume it with: "));
    wait_until_done(env, &["m1"]);
}

/// Kills the run. `status` and `why` name the command that goes on with it.
pub(super) fn kill_run(env: &TestEnv, run: &mut Child) {
    run.kill().unwrap();
    run.wait().unwrap();
    let command = format!("teamctl run {} --resume --keep-team", env.path("night.toml").display());
    for args in [&["status"][..], &["why"], &["why", "wes"]] {
        let output = env.teamctl_with(args, &[]).expect_success();
        assert_eq!(printed_command(&output, NO_RUN), command, "{args:?}");
    }
}

const NO_RUN: &str = "no run drives the team any more, so failed tasks are not retried; go on with: ";

/// Reboots. The user types the command that
/// `status` prints, and all members go on. Returns the resumed run.
pub(super) fn reboot(env: &TestEnv) -> Child {
    for key in ["a3", "g2", "w1"] {
        wait_until_held(env, key, 2);
        stop_holding(env, key);
    }
    wait_until_exchange_pauses(env);
    env.reboot();
    send(env, WORKER_NOTE.0, WORKER_NOTE.1);
    let status = env.teamctl(["status"]);
    assert_eq!(status.code, 69, "{status:#?}");
    let run = start_printed_command(env, printed_command(&status.stdout, NO_RUN));
    wait_until_running(env, &all_members());
    let open = ["bad", "after-bad"];
    wait_until_done(env, &recorded_keys().filter(|key| !open.contains(key)).collect::<Vec<_>>());
    wait_until_exchange_pauses(env);
    run
}

fn kill_and_wait(env: &TestEnv, pid: u32) {
    let process = TaggedProcesses::single(pid);
    env.kill_process(pid);
    assert!(process.exit_within(harness::TIMEOUT), "{process:?}");
}

fn all_members() -> Vec<&'static str> {
    [&WORKTREE_MEMBERS[..], &WORKERS, &[PLANNER]].concat()
}

fn wait_until_running(env: &TestEnv, names: &[&str]) {
    for name in names {
        env.wait_until(&format!("{name} runs"), || running_member(env, name));
    }
}

/// The command that follows `text` on a line of `output`.
fn printed_command<'a>(output: &'a str, text: &str) -> &'a str {
    let line = output.lines().find_map(|line| line.split_once(text));
    line.unwrap_or_else(|| panic!("{text}: {output}")).1
}
