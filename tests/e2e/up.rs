//! `up`: how it starts a tmux server, and what it says about the members of the last daemon.

use harness::TestEnv;

/// The name of a tmux server that only this environment uses. Its socket lies below `$TMUX_TMPDIR`.
const SERVER: &str = "own";

fn tmux(env: &TestEnv, args: &[&str]) -> String {
    let uid = rustix::process::getuid().as_raw();
    let socket = env.path(&format!("run/tmux-{uid}/{SERVER}"));
    let output = env.command("tmux").arg("-S").arg(socket).args(args).output().unwrap();
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
