//! `teamctl hide`, `show`, `layout` and `attach`. The panes and windows of the user stay where they
//! are.

use harness::TestEnv;
use serde_json::Value;

/// Spawns a worker and returns its pane.
fn spawn(env: &TestEnv, name: &str) -> String {
    let reply = env.json(["spawn", name, "--profile", "worker"]);
    reply["pane"].as_str().unwrap().to_owned()
}

/// Window and session of a pane.
fn window_and_session(env: &TestEnv, pane: &str) -> (String, String) {
    let text = env.tmux(["display-message", "-p", "-t", pane, "#{window_id} #{session_name}"]);
    let (window, session) = text.split_once(' ').unwrap();
    (window.to_owned(), session.to_owned())
}

/// The ids of the hidden panes in config.json.
fn hidden_panes(env: &TestEnv) -> Vec<String> {
    let ids = env.read_config()["hiddenPaneIds"].as_array().cloned().unwrap_or_default();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn hidden_agent_keeps_working_and_can_be_shown() {
    let env = TestEnv::with_team();
    let (ann, bob) = (spawn(&env, "ann"), spawn(&env, "bob"));
    let visible_location = window_and_session(&env, &ann);
    assert_eq!(window_and_session(&env, &bob), visible_location);
    for _ in 0..2 {
        let reply = env.json(["hide", "ann"]);
        assert_eq!((&reply["pane"], &reply["is_hidden"]), (&Value::from(ann.as_str()), &Value::from(true)));
        assert_eq!(window_and_session(&env, &ann).1, "_teamd-hidden");
        assert_eq!(hidden_panes(&env), std::slice::from_ref(&ann));
    }
    assert_eq!(window_and_session(&env, &bob), visible_location, "no other pane is moved");
    assert_eq!(env.member("ann").unwrap()["is_hidden"], true);
    let status = env.teamctl(["status"]);
    assert!(status.stdout.contains(&format!("{ann} hidden")), "{status:?}");
    let metadata = r#"{"command":"echo from the dark"}"#;
    env.teamctl(["task", "create", "x", "--owner", "ann", "--metadata", metadata]).expect_success();
    env.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).expect_success();
    for command in ["capture", "logs"] {
        env.wait_until("the output is there", || {
            env.teamctl([command, "ann"]).stdout.contains("from the dark").then_some(())
        });
    }
    // A new pane goes to the window of the visible panes.
    assert_eq!(window_and_session(&env, &spawn(&env, "cat")), visible_location);
    for _ in 0..2 {
        assert_eq!(env.json(["show", "ann"])["is_hidden"], false);
        assert_eq!(
            (window_and_session(&env, &ann), hidden_panes(&env)),
            (visible_location.clone(), Vec::new())
        );
    }
    let sessions = env.tmux(["list-sessions", "-F", "#{session_name}"]);
    assert!(!sessions.contains("hidden"), "{sessions}");
    env.shut_down();
}

#[test]
fn shown_panes_stand_in_joining_order() {
    let env = TestEnv::with_team();
    let panes = ["ann", "bob", "cat"].map(|name| spawn(&env, name));
    let order = || env.tmux(["list-panes", "-t", &panes[0], "-F", "#{pane_id}"]);
    assert_eq!(order(), panes.join("\n"));
    for hidden in [&["ann"][..], &["bob"], &["cat"], &["bob", "ann"], &["ann", "bob", "cat"]] {
        for command in ["hide", "show"] {
            hidden.iter().for_each(|name| drop(env.json([command, name])));
        }
        assert_eq!(order(), panes.join("\n"), "after {hidden:?}");
    }
    env.shut_down();
}

#[test]
fn hidden_panes_survive_the_daemon() {
    let env = TestEnv::with_team();
    let (ann, bob) = (spawn(&env, "ann"), spawn(&env, "bob"));
    for name in ["ann", "bob"] {
        env.teamctl(["hide", name]).expect_success();
    }
    env.kill_process(env.daemon_pid());
    env.wait_until("the daemon has ended", || (env.teamctl(["status"]).code == 69).then_some(()));
    assert_eq!(window_and_session(&env, &ann).1, "_teamd-hidden");
    env.start_daemon();
    env.wait_until("both agents are running", || {
        let is_running = |name| env.member(name).is_some_and(|member| member["lifecycle"] == "running");
        (is_running("ann") && is_running("bob")).then_some(())
    });
    assert_eq!(env.member("bob").unwrap()["is_hidden"], true);
    let mut panes = [ann.clone(), bob];
    panes.sort();
    let mut listed_panes = hidden_panes(&env);
    listed_panes.sort();
    assert_eq!(listed_panes, panes);
    env.teamctl(["kill", "bob"]).expect_success();
    env.wait_until("bob is not listed as hidden", || {
        (hidden_panes(&env) == std::slice::from_ref(&ann)).then_some(())
    });
    env.teamctl(["show", "ann"]).expect_success();
    assert_ne!(window_and_session(&env, &ann).1, "_teamd-hidden");
    env.teamctl(["hide", "ann"]).expect_success();
    env.teamctl(["shutdown", "ann"]).expect_success();
    env.wait_until("no pane is listed as hidden", || {
        env.read_config().get("hiddenPaneIds").is_none().then_some(())
    });
    let sessions = env.tmux(["list-sessions", "-F", "#{session_name}"]);
    assert!(!sessions.contains("hidden"), "{sessions}");
    env.shut_down();
}

#[test]
fn hide_works_with_base_index_1_and_small_terminals() {
    let env = TestEnv::with_tmux_conf(
        "set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on\n\
         set -g remain-on-exit on\nset -g destroy-unattached off\nset -g default-command 'echo no'\n",
    );
    let teamd = harness::programs().join("teamd").display().to_string();
    let root = env.root().display().to_string();
    env.tmux(["new-session", "-d", "-s", "small", "-x", "80", "-y", "24", "--", &teamd, "--root", &root]);
    env.wait_for_daemon();
    env.teamctl(["create", "survey"]).expect_success();
    let panes = [spawn(&env, "ann"), spawn(&env, "bob")];
    for name in ["ann", "bob"] {
        env.teamctl(["hide", name]).expect_success();
    }
    assert!(panes.iter().all(|pane| window_and_session(&env, pane).1 == "_teamd-hidden"));
    for name in ["bob", "ann"] {
        env.teamctl(["show", name]).expect_success();
    }
    let locations = panes.each_ref().map(|pane| window_and_session(&env, pane));
    assert!(locations.iter().all(|location| location.1 == "small"), "{locations:?}");
    assert_ne!(locations[0].0, locations[1].0, "a window of 80 columns has one agent");
    env.shut_down();
}

#[test]
fn users_panes_and_windows_are_left_alone() {
    let env = TestEnv::with_team();
    let ann = spawn(&env, "ann");
    let (window, _) = window_and_session(&env, &ann);
    let user_pane = env.tmux(["split-window", "-d", "-t", &window, "-P", "-F", "#{pane_id}", "cat", "-"]);
    env.teamctl(["hide", "ann"]).expect_success();
    assert_eq!(window_and_session(&env, &user_pane).0, window, "the window stays with the pane of the user");
    env.teamctl(["show", "ann"]).expect_success();
    env.teamctl(["layout", "even-vertical"]).expect_success();
    assert_eq!(window_and_session(&env, &user_pane).0, window);
    // The user moves the pane of an agent into a window of the user.
    let user_window = env.tmux(["display-message", "-p", "-t", "user:", "#{window_id}"]);
    env.tmux(["join-pane", "-d", "-s", &ann, "-t", &user_window]);
    let read_layout = || env.tmux(["display-message", "-p", "-t", &user_window, "#{window_layout}"]);
    let layout = read_layout();
    env.teamctl(["layout", "even-horizontal"]).expect_success();
    assert_eq!(read_layout(), layout);
    assert_ne!(
        window_and_session(&env, &spawn(&env, "bob")).0,
        user_window,
        "no new pane is opened in the window of the user"
    );
    env.tmux(["kill-pane", "-t", &user_pane]);
    env.shut_down();
}

#[test]
fn layout_applies_to_later_panes() {
    let env = TestEnv::with_team();
    let ann = spawn(&env, "ann");
    let reply = env.json(["layout", "even-horizontal"]);
    assert_eq!((&reply["layout"], &reply["windows"]), (&Value::from("even-horizontal"), &Value::from(1)));
    spawn(&env, "bob");
    spawn(&env, "cat");
    let window = window_and_session(&env, &ann).0;
    let are_side_by_side = || {
        let panes = env.tmux(["list-panes", "-t", &window, "-F", "#{pane_top} #{pane_width}"]);
        let rows: Vec<&str> = panes.lines().collect();
        (rows.len() == 3 && rows.iter().all(|row| row.starts_with("1 6"))).then_some(())
    };
    env.wait_until("three panes are side by side", are_side_by_side);
    for layout in ["tiled", "main-vertical", "main-horizontal", "even-vertical"] {
        env.teamctl(["layout", layout]).expect_success();
    }
    assert_eq!(env.teamctl(["layout", "sideways"]).code, 64);
    env.shut_down();
}

#[test]
fn hide_fails_without_pane_or_permission() {
    let env = TestEnv::with_team();
    env.teamctl(["spawn", "ann", "--profile", "worker", "--backend", "in-process"]).expect_success();
    let error = env.teamctl(["hide", "ann"]).expect_failure(67);
    assert!(error.contains("no pane"), "{error}");
    env.teamctl(["hide", "eve"]).expect_failure(67);
    for args in [&["hide", "ann"][..], &["show", "ann"], &["layout", "tiled"]] {
        env.teamctl_with(args, &[("TEAMD_MEMBER", "ann"), ("TEAMD_TEAM", "survey")]).expect_failure(77);
    }
    env.shut_down();
}

#[test]
fn attach_shows_a_hidden_pane() {
    let env = TestEnv::with_team();
    let ann = spawn(&env, "ann");
    env.teamctl(["hide", "ann"]).expect_success();
    let (inner_socket, outer_socket) =
        (env.tmux_socket().display().to_string(), env.path("outer").display().to_string());
    let open_terminal = |command_line: &str| {
        let text = format!("unset TMUX TMUX_PANE; exec {command_line}");
        let mut command = env.command("tmux");
        command.args([
            "-S",
            &outer_socket,
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "150",
            "-y",
            "40",
            "--",
        ]);
        assert!(command.args(["/bin/sh", "-c", &text]).status().unwrap().success());
    };
    let is_client_at = |pane: &str| {
        let clients = env.tmux(["list-clients", "-F", "#{client_control_mode} #{pane_id}"]);
        clients.lines().any(|line| line == format!("0 {pane}")).then_some(())
    };
    open_terminal(&format!("tmux -S '{inner_socket}' attach -t user"));
    env.wait_until("a client is attached", || {
        (env.tmux(["list-clients", "-t", "user", "-F", "x"]) == "x").then_some(())
    });
    let teamctl = harness::programs().join("teamctl").display().to_string();
    env.tmux(["new-window", "-t", "user:", "--", &teamctl, "attach", "ann"]);
    env.wait_until("the client has switched to the pane", || is_client_at(&ann));
    assert!(hidden_panes(&env).is_empty());
    let mut kill_outer_server = env.command("tmux");
    assert!(kill_outer_server.args(["-S", &outer_socket, "kill-server"]).status().unwrap().success());
    env.wait_until("no client is at the pane", || is_client_at(&ann).is_none().then_some(()));
    env.teamctl(["hide", "ann"]).expect_success();
    open_terminal(&format!("'{teamctl}' attach ann"));
    env.wait_until("a new client is at the pane", || is_client_at(&ann));
    assert!(hidden_panes(&env).is_empty());
    let mut kill_outer_server = env.command("tmux");
    assert!(kill_outer_server.args(["-S", &outer_socket, "kill-server"]).status().unwrap().success());
    env.shut_down();
}
