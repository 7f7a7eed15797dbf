//! `up`: how it starts a tmux server, which root it takes, and what it says about the members of the
//! last daemon.

use harness::{TaggedProcesses, TestEnv};
use std::os::unix::fs::DirBuilderExt;

/// The name of a tmux server that only this environment uses. Its socket lies below `$TMUX_TMPDIR`.
const SERVER: &str = "own";

fn socket_of_server(env: &TestEnv) -> std::path::PathBuf {
    env.path(&format!("run/tmux-{}/{SERVER}", rustix::process::getuid().as_raw()))
}

fn tmux(env: &TestEnv, args: &[&str]) -> String {
    let output = env.command("tmux").arg("-S").arg(socket_of_server(env)).args(args).output().unwrap();
    assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// With `exit-unattached` on, a tmux server exits when no client is attached.
#[test]
fn new_server_stays_although_the_user_has_exit_unattached_on() {
    let env = TestEnv::new();
    env.write_file("home/.tmux.conf", "set -s exit-unattached on\n");
    env.teamctl(["up", "-L", SERVER]).expect_success();
    env.teamctl(["create", "survey"]).expect_success();
    env.teamctl(["spawn", "ann", "--", &env.scripted_agent_path(), "stay"]).expect_success();
    env.kill_process(env.daemon_pid());
    env.teamctl(["up", "-L", SERVER]).expect_success();
    assert_eq!(env.member("ann").unwrap()["lifecycle"], "running");
    env.shut_down();
}

#[test]
fn members_whose_tmux_server_was_killed_are_named() {
    let env = TestEnv::new();
    env.teamctl(["up", "-L", SERVER]).expect_success();
    env.teamctl(["create", "survey"]).expect_success();
    for name in ["ann", "bob"] {
        env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "stay"]).expect_success();
    }
    let server: u32 = tmux(&env, &["display-message", "-p", "#{pid}"]).parse().unwrap();
    env.kill_process(server);
    env.wait_until("the daemon has ended", || (env.teamctl(["status"]).code == 69).then_some(()));
    let up = env.teamctl(["up", "-L", SERVER]).expect_success();
    for line in [
        "2 members are suspended; resume them with: teamctl up --resume",
        "  ann@survey: tmux gone",
        "  bob@survey: tmux gone",
    ] {
        assert!(up.lines().any(|shown| shown == line), "{line}: {up}");
    }
    env.shut_down();
}

#[test]
fn environment_of_the_tmux_server_selects_no_root() {
    let env = TestEnv::new();
    let other = env.path("out");
    let directory = socket_of_server(&env).parent().unwrap().to_owned();
    std::fs::DirBuilder::new().mode(0o700).create(directory).unwrap();
    tmux(&env, &["new-session", "-d", "--", "cat", "-"]);
    for name in ["TEAMD_ROOT", "CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"] {
        tmux(&env, &["set-environment", "-g", name, &other.display().to_string()]);
    }
    // The root of this caller is the directory that only $CLAUDE_CONFIG_DIR names.
    let root = env.root();
    let mut up = env.command(harness::programs().join("teamctl"));
    up.env_remove("TEAMD_ROOT").env_remove("XDG_STATE_HOME").env("CLAUDE_CONFIG_DIR", &root);
    let output = up.args(["up", "-L", SERVER]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    env.teamctl(["create", "survey"]).expect_success();
    assert!(root.join("teams/survey/config.json").exists() && !other.join("teams").exists());
    assert!(env.path("home/.local/state/teamd").exists() && !other.join("teamd").exists());
    // The windows that a person opens in the daemon's session have the variable of the server.
    let script = format!("echo $XDG_STATE_HOME >{}", other.join("variable").display());
    tmux(&env, &["new-window", "-t", "=teamd:", "--", "sh", "-c", &script]);
    let variable = env.wait_until("the window has started", || {
        Some(env.read("out/variable")).filter(|text| text.ends_with('\n'))
    });
    assert_eq!(variable.trim_end(), other.to_str().unwrap());
    env.teamctl(["delete", "survey"]).expect_success();
    env.teamctl(["down"]).expect_success();
    // The environment ends only its own tmux server, so this one and its program end here.
    let pids = tmux(&env, &["list-panes", "-a", "-F", "#{pane_pid}"]);
    let cat = TaggedProcesses::single(pids.lines().next().unwrap().parse().unwrap());
    let server = TaggedProcesses::single(tmux(&env, &["display-message", "-p", "#{pid}"]).parse().unwrap());
    tmux(&env, &["kill-server"]);
    assert!([cat, server].iter().all(|process| process.exit_within(harness::TIMEOUT)));
    env.shut_down();
}
