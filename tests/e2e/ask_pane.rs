//! `teamctl ask --pane`: a pane beside the caller shows the program's output while it works.

use harness::TestEnv;
use std::process::Command;

/// Starts an ask in the only pane of a new session. The pane stays after the ask. The exit code is then
/// in `out/code`, the answer in `out/answer`, and what the shell says in `out/error`.
fn start_ask(env: &TestEnv, options: &str, script: &str) {
    env.write_file("out/program", script);
    let ask = format!(
        "trap : INT; teamctl ask --pane {options} 'first line' -- sh out/program >out/answer 2>out/error; \
         echo $? >out/code; read _"
    );
    env.write_file("out/ask", ask);
    env.tmux(["new-session", "-d", "-s", "mine", "-x", "160", "-y", "40", "--", "sh", "out/ask"]);
}

/// The panes of the session, each with its pid and whether it is selected.
fn panes(env: &TestEnv) -> Vec<String> {
    let format = "#{pane_id} #{pane_pid} #{pane_active} #{pane_dead}";
    env.tmux(["list-panes", "-s", "-t", "mine", "-F", format]).lines().map(str::to_owned).collect()
}

/// Waits until the text is on the screen of the new pane, and returns this screen.
fn wait_for_text(env: &TestEnv, text: &str) -> String {
    env.wait_until(text, || {
        let screen = env.run_tmux(&["capture-pane", "-p", "-t", "mine:.1"]).stdout;
        screen.contains(text).then_some(screen)
    })
}

fn wait_until_one_pane(env: &TestEnv) {
    env.wait_until("the new pane is closed", || (panes(env).len() == 1).then_some(()));
}

fn exit_code(env: &TestEnv) -> String {
    env.wait_until("the ask has ended", || Some(env.read("out/code")).filter(|code| code.ends_with('\n')))
}

/// A program that prints, and waits for a gate.
fn program(env: &TestEnv) -> String {
    format!("echo thinking >&2; echo half; read _ <{}; echo whole", env.create_gate("out/gate"))
}

#[test]
fn pane_shows_the_output_and_closes_at_the_end() {
    let env = TestEnv::with_tmux_conf("set -g remain-on-exit on\nset -g focus-events on\n");
    env.tmux(["new-session", "-d", "-s", "other", "--", "cat"]);
    let others = env.tmux(["list-panes", "-s", "-t", "other", "-F", "#{pane_id} #{pane_width}"]);
    start_ask(&env, "", &program(&env));
    wait_for_text(&env, "thinking");
    let screen = wait_for_text(&env, "half");
    assert!(
        screen.contains("ask-") && screen.contains(": first line") && screen.contains("thinking"),
        "{screen}"
    );
    let selected: Vec<bool> = panes(&env).iter().map(|pane| pane.contains(" 1 0")).collect();
    assert_eq!(selected, [true, false], "the caller's pane stays selected");
    env.open_gate("out/gate");
    assert_eq!(exit_code(&env), "0\n");
    assert_eq!((env.read("out/answer"), env.read("out/error")), ("half\nwhole\n".into(), String::new()));
    wait_until_one_pane(&env);
    let fills_window = "#{==:#{pane_width}x#{pane_height},#{window_width}x#{window_height}}";
    assert_eq!(env.tmux(["display-message", "-p", "-t", "mine:", fills_window]).trim(), "1");
    assert_eq!(env.tmux(["list-panes", "-s", "-t", "other", "-F", "#{pane_id} #{pane_width}"]), others);
    let left = harness::files_below(&env.path("run"));
    assert!(left.iter().all(|path| !path.to_string_lossy().contains("ask-")), "{left:?}");
    env.shut_down();
}

/// Starts an ask that never ends, ends it by `end`, and checks that its pane closes. `end` gets the pid
/// of `teamctl`.
fn assert_pane_closes(options: &str, code: &str, end: impl Fn(&TestEnv, u32)) {
    let env = TestEnv::new();
    start_ask(&env, options, "echo working; exec sleep 3600");
    wait_for_text(&env, "working");
    let shell = panes(&env)[0].split(' ').nth(1).unwrap().parse().unwrap();
    end(&env, child_of(shell));
    assert_eq!(exit_code(&env), code);
    wait_until_one_pane(&env);
    env.shut_down();
}

/// The pid of the only child of a process.
fn child_of(pid: u32) -> u32 {
    let output = Command::new("pgrep").args(["-P", &pid.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn pane_closes_however_the_ask_ends() {
    let env = TestEnv::new();
    start_ask(&env, "--timeout 2s", "echo working; exec sleep 3600");
    assert_eq!(exit_code(&env), "75\n");
    wait_until_one_pane(&env);
    env.shut_down();
    assert_pane_closes("", "1\n", |env, _| drop(env.tmux(["send-keys", "-t", "mine:.0", "C-c"])));
    assert_pane_closes("", "137\n", |_, teamctl| kill(teamctl));
    assert_pane_closes("", "1\n", |_, teamctl| kill(child_of(teamctl)));
}

#[test]
fn background_ask_has_a_pane_too() {
    let env = TestEnv::new();
    start_ask(&env, "--background", &program(&env));
    assert_eq!(exit_code(&env), "0\n");
    wait_for_text(&env, "half");
    env.open_gate("out/gate");
    let id = env.read("out/answer");
    assert_eq!(env.teamctl(["wait", id.trim()]).expect_success(), "half\nwhole\n");
    wait_until_one_pane(&env);
    env.shut_down();
}

#[test]
fn closed_pane_does_not_disturb_the_ask() {
    let env = TestEnv::new();
    start_ask(&env, "", &program(&env));
    wait_for_text(&env, "half");
    env.tmux(["kill-pane", "-t", "mine:.1"]);
    env.open_gate("out/gate");
    assert_eq!((exit_code(&env).as_str(), env.read("out/answer").as_str()), ("0\n", "half\nwhole\n"));
    env.shut_down();
}

#[test]
fn pane_needs_tmux_and_space() {
    let env = TestEnv::new();
    let error = env.teamctl(["ask", "x", "--pane", "--", "cat"]).expect_failure(76);
    assert!(error.contains("not in tmux") && error.contains("leave out --pane"), "{error}");
    assert_eq!(env.teamctl(["ask", "--each", "x", "--pane", "--", "cat"]).code, 64);
    env.tmux(["new-session", "-d", "-s", "mine", "-x", "2", "-y", "2", "--", "cat"]);
    let pane = env.tmux(["display-message", "-p", "-t", "mine:", "#{pane_id} #{pid}"]);
    let (pane, pid) = pane.trim().split_once(' ').unwrap();
    let tmux = format!("{},{pid},0", env.tmux_socket().display());
    let error = env
        .teamctl_with(&["ask", "x", "--pane", "--", "cat"], &[("TMUX", &tmux), ("TMUX_PANE", pane)])
        .expect_failure(76);
    assert!(error.contains("no space") && error.contains("window larger"), "{error}");
    assert_eq!(panes(&env).len(), 1);
    env.shut_down();
}
