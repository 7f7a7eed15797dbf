//! Panes out of sight and back; what a person has in those windows stays.

use harness::House;
use serde_json::Value;

fn spawn(house: &House, name: &str) -> String {
    let spawned = house.json(["spawn", name, "--agent", "worker"]);
    spawned["pane"].as_str().unwrap().to_owned()
}

/// Window and session of a pane.
fn place(house: &House, pane: &str) -> (String, String) {
    let seen = house.tmux(["display-message", "-p", "-t", pane, "#{window_id} #{session_name}"]);
    let (window, session) = seen.split_once(' ').unwrap();
    (window.to_owned(), session.to_owned())
}

fn hidden(house: &House) -> Vec<String> {
    let ids = house.config()["hiddenPaneIds"].as_array().cloned().unwrap_or_default();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_hidden_agent_works_on_is_seen_by_those_who_ask_and_comes_back_beside_the_others() {
    let house = House::with_team();
    let (ann, bob) = (spawn(&house, "ann"), spawn(&house, "bob"));
    let home = place(&house, &ann);
    assert_eq!(place(&house, &bob), home);
    for _ in 0..2 {
        let reply = house.json(["hide", "ann"]);
        assert_eq!((&reply["pane"], &reply["hidden"]), (&Value::from(ann.as_str()), &Value::from(true)));
        assert_eq!(place(&house, &ann).1, "_teamd-hidden");
        assert_eq!(hidden(&house), std::slice::from_ref(&ann));
    }
    assert_eq!(place(&house, &bob), home, "nobody else moves");
    assert_eq!(house.member("ann").unwrap()["hidden"], true);
    let status = house.teamctl(["status"]);
    assert!(status.stdout.contains(&format!("{ann} hidden")), "{status:?}");
    let metadata = r#"{"command":"echo from the dark"}"#;
    house.teamctl(["task", "create", "x", "--owner", "ann", "--metadata", metadata]).ok();
    house.teamctl(["wait", "--for", "tasks-done", "--timeout", "20s"]).ok();
    assert!(house.teamctl(["capture", "ann"]).stdout.contains("from the dark"));
    assert!(house.teamctl(["logs", "ann"]).stdout.contains("from the dark"));
    // Another one goes beside the visible ones, never out of sight.
    assert_eq!(place(&house, &spawn(&house, "cat")), home);
    for _ in 0..2 {
        assert_eq!(house.json(["show", "ann"])["hidden"], false);
        assert_eq!((place(&house, &ann), hidden(&house)), (home.clone(), Vec::new()));
    }
    let sessions = house.tmux(["list-sessions", "-F", "#{session_name}"]);
    assert!(!sessions.contains("hidden"), "{sessions}");
    house.end();
}

#[test]
fn hidden_ones_outlive_the_daemon_and_end_as_any() {
    let house = House::with_team();
    let (ann, bob) = (spawn(&house, "ann"), spawn(&house, "bob"));
    for name in ["ann", "bob"] {
        house.teamctl(["hide", name]).ok();
    }
    house.kill_9(house.daemon());
    house.until("it is gone", || (house.teamctl(["status"]).code == 69).then_some(()));
    assert_eq!(place(&house, &ann).1, "_teamd-hidden");
    house.start_daemon();
    house.until("both are back", || {
        let phase = |name| house.member(name).is_some_and(|member| member["phase"] == "running");
        (phase("ann") && phase("bob")).then_some(())
    });
    assert_eq!(house.member("bob").unwrap()["hidden"], true);
    let mut both = [ann.clone(), bob];
    both.sort();
    let mut listed = hidden(&house);
    listed.sort();
    assert_eq!(listed, both);
    house.teamctl(["kill", "bob"]).ok();
    house.until("it is off the list", || (hidden(&house) == std::slice::from_ref(&ann)).then_some(()));
    house.teamctl(["show", "ann"]).ok();
    assert_ne!(place(&house, &ann).1, "_teamd-hidden");
    house.teamctl(["hide", "ann"]).ok();
    house.teamctl(["shutdown", "ann"]).ok();
    house.until("nothing is hidden", || house.config().get("hiddenPaneIds").is_none().then_some(()));
    let sessions = house.tmux(["list-sessions", "-F", "#{session_name}"]);
    assert!(!sessions.contains("hidden"), "{sessions}");
    house.end();
}

#[test]
fn with_indexes_that_begin_at_one_and_a_small_terminal() {
    let house = House::with_conf(
        "set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on\n\
         set -g remain-on-exit on\nset -g destroy-unattached off\nset -g default-command 'echo no'\n",
    );
    let teamd = harness::programs().join("teamd").display().to_string();
    let root = house.root().display().to_string();
    house.tmux(["new-session", "-d", "-s", "small", "-x", "80", "-y", "24", "--", &teamd, "--root", &root]);
    house.until_answered();
    house.teamctl(["create", "survey"]).ok();
    let panes = [spawn(&house, "ann"), spawn(&house, "bob")];
    for name in ["ann", "bob"] {
        house.teamctl(["hide", name]).ok();
    }
    assert!(panes.iter().all(|pane| place(&house, pane).1 == "_teamd-hidden"));
    for name in ["bob", "ann"] {
        house.teamctl(["show", name]).ok();
    }
    let places = panes.each_ref().map(|pane| place(&house, pane));
    assert!(places.iter().all(|place| place.1 == "small"), "{places:?}");
    assert_ne!(places[0].0, places[1].0, "80 columns hold one agent a window");
    house.end();
}

#[test]
fn a_persons_own_pane_there_is_left_alone_and_so_is_a_window_of_theirs() {
    let house = House::with_team();
    let ann = spawn(&house, "ann");
    let (window, _) = place(&house, &ann);
    let own = house.tmux(["split-window", "-d", "-t", &window, "-P", "-F", "#{pane_id}", "cat", "-"]);
    house.teamctl(["hide", "ann"]).ok();
    assert_eq!(place(&house, &own).0, window, "the window is the person's now");
    house.teamctl(["show", "ann"]).ok();
    house.teamctl(["layout", "even-vertical"]).ok();
    assert_eq!(place(&house, &own).0, window);
    // And the other way round: one of ours that a person took into a window of theirs.
    let theirs = house.tmux(["display-message", "-p", "-t", "user:", "#{window_id}"]);
    house.tmux(["join-pane", "-d", "-s", &ann, "-t", &theirs]);
    let shape = || house.tmux(["display-message", "-p", "-t", &theirs, "#{window_layout}"]);
    let before = shape();
    house.teamctl(["layout", "even-horizontal"]).ok();
    assert_eq!(shape(), before);
    assert_ne!(place(&house, &spawn(&house, "bob")).0, theirs, "no agent comes into it uninvited");
    house.tmux(["kill-pane", "-t", &own]);
    house.end();
}

#[test]
fn a_layout_is_kept_for_panes_that_come_later() {
    let house = House::with_team();
    let ann = spawn(&house, "ann");
    let said = house.json(["layout", "even-horizontal"]);
    assert_eq!((&said["layout"], &said["windows"]), (&Value::from("even-horizontal"), &Value::from(1)));
    spawn(&house, "bob");
    spawn(&house, "cat");
    let window = place(&house, &ann).0;
    let side_by_side = || {
        let panes = house.tmux(["list-panes", "-t", &window, "-F", "#{pane_top} #{pane_width}"]);
        let rows: Vec<&str> = panes.lines().collect();
        (rows.len() == 3 && rows.iter().all(|row| row.starts_with("1 6"))).then_some(())
    };
    house.until("three side by side", side_by_side);
    for layout in ["tiled", "main-vertical", "main-horizontal", "even-vertical"] {
        house.teamctl(["layout", layout]).ok();
    }
    assert_eq!(house.teamctl(["layout", "sideways"]).code, 64);
    house.end();
}

#[test]
fn what_has_no_pane_and_who_may_not() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--agent", "worker", "--backend", "in-process"]).ok();
    let said = house.teamctl(["hide", "ann"]).fails(67);
    assert!(said.contains("no pane"), "{said}");
    house.teamctl(["hide", "eve"]).fails(67);
    for arguments in [&["hide", "ann"][..], &["show", "ann"], &["layout", "tiled"]] {
        house.teamctl_with(arguments, &[("TEAMD_AGENT", "ann"), ("TEAMD_TEAM", "survey")]).fails(77);
    }
    house.end();
}

#[test]
fn attach_shows_a_hidden_one_from_inside_tmux_and_from_outside() {
    let house = House::with_team();
    let ann = spawn(&house, "ann");
    house.teamctl(["hide", "ann"]).ok();
    let (inner, outer) =
        (house.tmux_socket().display().to_string(), house.path("outer").display().to_string());
    let terminal = |words: &str| {
        let text = format!("unset TMUX TMUX_PANE; exec {words}");
        let mut command = house.command("tmux");
        command.args(["-S", &outer, "-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "40", "--"]);
        assert!(command.args(["/bin/sh", "-c", &text]).status().unwrap().success());
    };
    let looks_at = |pane: &str| {
        let clients = house.tmux(["list-clients", "-F", "#{client_control_mode} #{pane_id}"]);
        clients.lines().any(|line| line == format!("0 {pane}")).then_some(())
    };
    terminal(&format!("tmux -S '{inner}' attach -t user"));
    house.until("somebody sits there", || {
        (house.tmux(["list-clients", "-t", "user", "-F", "x"]) == "x").then_some(())
    });
    let teamctl = harness::programs().join("teamctl").display().to_string();
    house.tmux(["new-window", "-t", "user:", "--", &teamctl, "attach", "ann"]);
    house.until("the client has switched to the pane", || looks_at(&ann));
    assert!(hidden(&house).is_empty());
    let mut end = house.command("tmux");
    assert!(end.args(["-S", &outer, "kill-server"]).status().unwrap().success());
    house.until("nobody looks", || looks_at(&ann).is_none().then_some(()));
    house.teamctl(["hide", "ann"]).ok();
    terminal(&format!("'{teamctl}' attach ann"));
    house.until("a new client looks at the pane", || looks_at(&ann));
    assert!(hidden(&house).is_empty());
    let mut end = house.command("tmux");
    assert!(end.args(["-S", &outer, "kill-server"]).status().unwrap().success());
    house.end();
}
