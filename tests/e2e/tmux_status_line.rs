//! Checks `examples/tmux.conf` in tmux: its status line and its key for the popup.

use crate::top::OuterTerminal;
use harness::TestEnv;

/// Loads the example into the tmux server, with the path of the tested teamctl and the root of the
/// environment.
fn load_tmux_conf(env: &TestEnv) {
    let text = include_str!("../../examples/tmux.conf");
    let teamctl = harness::programs().join("teamctl").display().to_string();
    let root = env.root().display().to_string();
    let use_tested_program = |text: String, command: &str| {
        text.replace(&format!("teamctl {command}"), &format!("{teamctl} --root {root} {command}"))
    };
    let text = use_tested_program(use_tested_program(text.to_owned(), "status"), "top");
    let path = env.write_file("out/tmux.conf", text);
    // Older versions of tmux do not have this option.
    let has_option = env.tmux(["show-options", "-gw"]).contains("allow-passthrough");
    if !has_option {
        let text: String = remove_lines_with(&env.read("out/tmux.conf"), "allow-passthrough");
        env.write_file("out/tmux.conf", text);
    }
    env.tmux(["source-file", &path]);
}

fn remove_lines_with(text: &str, word: &str) -> String {
    text.lines().filter(|line| !line.contains(word)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn status_line_shows_working_failed_and_daemon_down() {
    let env = TestEnv::with_team();
    load_tmux_conf(&env);
    let terminal = OuterTerminal::open(&env, "user");
    env.teamctl(["spawn", "ann", "--", "sleep", "3600"]).expect_success();
    env.teamctl(["spawn", "bob", "--profile", "worker"]).expect_success();
    env.wait_until("bob is idle", || (env.member("bob")?["activity"] == "idle").then_some(()));
    assert_eq!(env.teamctl(["status", "--format", "tmux"]).expect_success().trim(), "survey 1/2");
    terminal.wait_for_text("survey 1/2");
    env.teamctl(["spawn", "cat", "--", "false"]).expect_success();
    env.wait_until("cat has exited", || env.member("cat").is_none().then_some(()));
    terminal.wait_for_text("survey 1/2 x1");
    env.kill_process(env.daemon_pid());
    let output = env.teamctl(["status", "--format", "tmux"]);
    assert_eq!((output.code, output.stderr.as_str()), (69, ""));
    terminal.wait_for_text("teamd down");
    drop(terminal);
    env.start_daemon();
    env.shut_down();
}

#[test]
fn popup_key_explains_an_empty_screen() {
    let env = TestEnv::with_daemon();
    load_tmux_conf(&env);
    let terminal = OuterTerminal::open(&env, "user");
    terminal.press("C-b");
    terminal.press("t");
    terminal.wait_for_text("cannot find a team: there is none");
    drop(terminal);
    env.shut_down();
}
