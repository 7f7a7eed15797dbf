//! `--here`: the members' panes open in a window of a person, beside the pane where the command was
//! typed. The window gets its former layout again.

use harness::{CommandOutput, TestEnv};
use std::path::Path;

/// Formats everything of a window that a person sees, and its own options.
fn window_state(env: &TestEnv, window: &str) -> String {
    let format = "#{window_name} #{window_layout} #{window_zoomed_flag}";
    let shown = env.tmux(["display-message", "-p", "-t", window, format]);
    format!("{shown}\n{}", env.tmux(["show-options", "-w", "-t", window]))
}

/// The panes of a window, in their order: `LEFT WIDTHxHEIGHT MEMBER`.
fn panes(env: &TestEnv, window: &str) -> Vec<String> {
    let format = "#{pane_left} #{pane_width}x#{pane_height} #{@teamd_name}";
    env.tmux(["list-panes", "-t", window, "-F", format]).lines().map(|line| line.trim().to_owned()).collect()
}

/// Runs `teamctl` as if a person typed it in the pane `pane`.
fn teamctl_in_pane(env: &TestEnv, pane: &str, args: &[&str]) -> CommandOutput {
    let pid = env.tmux(["display-message", "-p", "#{pid}"]);
    let tmux = format!("{},{pid},0", env.tmux_socket().display());
    env.teamctl_with(args, &[("TMUX", &tmux), ("TMUX_PANE", pane)])
}

/// Opens a window of 200 columns and 50 lines for a person. Returns the id of its pane.
fn open_person_window(env: &TestEnv) -> String {
    env.tmux(["new-window", "-d", "-n", "mine", "-P", "-F", "#{pane_id}", "-t", "user:", "--", "cat", "-"])
}

fn spawn(env: &TestEnv, name: &str) {
    env.teamctl(["spawn", name, "--", &env.scripted_agent_path(), "stay"]).expect_success();
}

/// Waits until the window has its state from before. The daemon restores it after the last pane has
/// closed, when the command has ended already.
fn wait_until_restored(env: &TestEnv, window: &str, before: &str) {
    env.wait_until("the window is as before", || (window_state(env, window) == before).then_some(()));
}

#[test]
fn members_stand_beside_the_persons_pane_while_there_is_space() {
    let env = TestEnv::with_tmux_conf("set -g base-index 1\nset -g pane-base-index 1\n");
    env.start_daemon();
    let pane = open_person_window(&env);
    let before = window_state(&env, &pane);
    teamctl_in_pane(&env, &pane, &["create", "survey", "--here"]).expect_success();
    for name in ["ann", "bob", "carl", "dan"] {
        spawn(&env, name);
    }
    // The labels of the borders take the first line.
    assert_eq!(panes(&env, &pane), ["0 60x49", "61 139x16 ann", "61 139x16 bob", "61 139x15 carl"]);
    assert_eq!(env.tmux(["display-message", "-p", "-t", &pane, "#{window_name}"]), "mine");
    let window = |name: &str| {
        let member = env.member(name).unwrap();
        env.tmux(["display-message", "-p", "-t", member["pane"].as_str().unwrap(), "#{window_id}"])
    };
    assert!(window("dan") != window("ann") && window("ann") == window("carl"), "{}", window("dan"));
    // The column is spread again after a pane has closed, and a member that joins takes its place.
    env.teamctl(["kill", "bob"]).expect_success();
    env.wait_until("the column is spread", || {
        (panes(&env, &pane) == ["0 60x49", "61 139x24 ann", "61 139x24 carl"]).then_some(())
    });
    spawn(&env, "eve");
    assert_eq!(panes(&env, &pane)[3], "61 139x15 eve");
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    wait_until_restored(&env, &pane, &before);
    env.shut_down();
}

#[test]
fn hidden_pane_returns_beside_the_persons_pane() {
    let env = TestEnv::new();
    env.start_daemon();
    let pane = open_person_window(&env);
    let before = window_state(&env, &pane);
    teamctl_in_pane(&env, &pane, &["create", "survey", "--here"]).expect_success();
    ["ann", "bob"].iter().for_each(|name| spawn(&env, name));
    let with_members = window_state(&env, &pane);
    for hidden in [&["ann"][..], &["bob"], &["ann", "bob"]] {
        hidden.iter().for_each(|name| drop(env.teamctl(["hide", name]).expect_success()));
        if hidden.len() == 2 {
            wait_until_restored(&env, &pane, &before);
        }
        hidden.iter().for_each(|name| drop(env.teamctl(["show", name]).expect_success()));
        wait_until_restored(&env, &pane, &with_members);
    }
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    wait_until_restored(&env, &pane, &before);
    env.shut_down();
}

/// The person's window has three panes and a border setting of its own. While it is zoomed, a member
/// gets a pane in a window of the team.
#[test]
fn other_panes_and_settings_of_the_window_stay() {
    let env = TestEnv::with_daemon();
    let pane = open_person_window(&env);
    env.tmux(["split-window", "-d", "-v", "-t", &pane, "--", "cat", "-"]);
    env.tmux(["split-window", "-d", "-h", "-l", "30", "-t", &pane, "--", "cat", "-"]);
    env.tmux(["set-option", "-w", "-t", &pane, "pane-border-status", "bottom"]);
    let before = window_state(&env, &pane);
    let others = panes(&env, &pane)[1..].to_vec();
    env.tmux(["resize-pane", "-Z", "-t", &pane]);
    let zoomed = window_state(&env, &pane);
    teamctl_in_pane(&env, &pane, &["lead", "survey", "--here=40"]).expect_success();
    spawn(&env, "ann");
    assert_eq!(window_state(&env, &pane), zoomed);
    env.tmux(["resize-pane", "-Z", "-t", &pane]);
    spawn(&env, "bob");
    let now = panes(&env, &pane);
    // The pane had 169 columns, of which it keeps 40 %.
    assert_eq!(
        now.iter().find(|shown| shown.ends_with(" bob")).unwrap().split('x').next().unwrap(),
        "68 101"
    );
    assert!(now.len() == 4 && others.iter().all(|other| now.contains(other)), "{others:?}: {now:?}");
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    wait_until_restored(&env, &pane, &before);
    env.shut_down();
}

#[test]
fn only_the_line_of_the_labels_changes_another_pane() {
    let env = TestEnv::with_daemon();
    let pane = open_person_window(&env);
    env.tmux(["split-window", "-d", "-h", "-b", "-l", "50", "-t", &pane, "--", "cat", "-"]);
    let before = window_state(&env, &pane);
    teamctl_in_pane(&env, &pane, &["create", "survey", "--here"]).expect_success();
    spawn(&env, "ann");
    assert_eq!(panes(&env, &pane)[0], "0 50x49");
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    wait_until_restored(&env, &pane, &before);
    env.shut_down();
}

#[test]
fn daemon_that_starts_later_restores_the_window() {
    let env = TestEnv::new();
    let mut daemon = env.start_daemon_without_pane();
    let pane = open_person_window(&env);
    let before = window_state(&env, &pane);
    teamctl_in_pane(&env, &pane, &["create", "survey", "--here"]).expect_success();
    spawn(&env, "ann");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let member = env.tmux(["list-panes", "-t", &pane, "-F", "#{?#{@teamd_name},#{pane_id},}"]);
    env.tmux(["kill-pane", "-t", member.trim()]);
    env.start_daemon();
    wait_until_restored(&env, &pane, &before);
    // The team keeps the person's pane, and uses it until it closes.
    spawn(&env, "bob");
    assert_eq!(panes(&env, &pane).len(), 2);
    env.tmux(["kill-pane", "-t", &pane]);
    spawn(&env, "cat");
    assert_eq!(env.member("cat").unwrap()["lifecycle"], "running");
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.shut_down();
}

#[test]
fn small_pane_is_left_alone() {
    let env = TestEnv::with_daemon();
    let pane = open_person_window(&env);
    env.tmux(["resize-window", "-t", &pane, "-x", "80", "-y", "24"]);
    let before = window_state(&env, &pane);
    teamctl_in_pane(&env, &pane, &["create", "survey", "--here"]).expect_success();
    spawn(&env, "ann");
    assert_eq!(window_state(&env, &pane), before);
    env.teamctl(["delete", "survey", "--force"]).expect_success();
    env.shut_down();
}

#[test]
fn run_opens_its_members_beside_the_pane() {
    let env = TestEnv::with_daemon();
    let pane = open_person_window(&env);
    let before = window_state(&env, &pane);
    let text = "name = \"survey\"\n[[member]]\nname = \"ann\"\nprofile = \"worker\"\n\
        [[task]]\nkey = \"look\"\nsubject = \"look\"\n\
        command = \"tmux -S $(echo $TMUX | cut -d, -f1) list-panes -t $TMUX_PANE -F '#{pane_id}' >$TEST_DIR/out/panes\"\n";
    env.write_file("team.toml", text);
    let file = env.path("team.toml");
    teamctl_in_pane(&env, &pane, &["run", &file.to_string_lossy(), "--here"]).expect_success();
    assert!(
        env.read("out/panes").lines().any(|shown| shown == pane),
        "the worker's window is that of the person"
    );
    wait_until_restored(&env, &pane, &before);
    env.shut_down();
}

#[test]
fn pane_of_no_tmux_or_another_server_is_refused_before_anything_is_created() {
    let env = TestEnv::with_daemon();
    let file =
        env.write_file("team.toml", "name = \"survey\"\n[[member]]\nname = \"ann\"\nprofile = \"worker\"\n");
    for args in
        [&["create", "survey", "--here"][..], &["lead", "survey", "--here"], &["run", &file, "--here"]]
    {
        let error = env.teamctl_with(args, &[]).expect_failure(76);
        assert!(error.contains("this terminal is not in tmux"), "{args:?}: {error}");
        let other =
            env.teamctl_with(args, &[("TMUX", "/nowhere/tmux,1,0"), ("TMUX_PANE", "%0")]).expect_failure(76);
        assert!(other.contains("it is on the tmux server /nowhere/tmux"), "{args:?}: {other}");
    }
    assert!(!Path::new(&env.root()).join("teams/survey").exists());
    let share = env.teamctl(["create", "survey", "--here=95"]);
    assert!(share.code == 64 && share.stderr.contains("95 is not in 10..=90"), "{share:?}");
    env.shut_down();
}
