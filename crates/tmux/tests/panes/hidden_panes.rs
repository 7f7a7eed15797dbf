//! Panes go out of sight and come back, and nothing else moves.

use tmux::{CreatedPane, Error, KillOutcome, PaneRow, TmuxServer};

use crate::test_server::{
    TestServer, idle_command, label, on_all_servers, on_default_servers, tag, tag_created,
};

fn row(server: &mut TmuxServer, pane: tmux::PaneId) -> PaneRow {
    server.list_panes().unwrap().into_iter().find(|row| row.pane == pane).unwrap()
}

fn session(server: &mut TmuxServer) -> tmux::SessionId {
    server.pane_session("%0".parse().unwrap()).unwrap()
}

/// Two panes of ours in a window.
fn two(server: &mut TmuxServer) -> (CreatedPane, CreatedPane) {
    let session = session(server);
    let one = server.new_window(session, "team", &idle_command()).unwrap();
    let other = server.split(one.window, &idle_command()).unwrap();
    tag_created(server, one, &tag("ann"), &label("ann"));
    server.tag_pane(other.pane, &tag("bob"), &label("bob")).unwrap();
    (one, other)
}

fn sessions(bench: &TestServer) -> Vec<String> {
    let all = bench.run(["list-sessions", "-F", "#{session_name}"]);
    all.lines().filter(|name| name.ends_with("hidden")).map(ToOwned::to_owned).collect()
}

#[test]
fn hidden_pane_keeps_its_process_and_returns() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        for _ in 0..2 {
            server.hide(one.pane, &tag("ann"), "team").unwrap();
            let seen = row(&mut server, one.pane);
            assert!(seen.is_hidden && seen.pid == one.pid && seen.window != one.window, "{seen:?}");
        }
        assert!(!row(&mut server, other.pane).is_hidden);
        server.hide(other.pane, &tag("bob"), "team").unwrap();
        assert_eq!(sessions(bench).len(), 1);
        let hidden = server.list_panes().unwrap().into_iter().filter(|row| row.is_hidden).count();
        assert_eq!(hidden, 2, "nothing but what was hidden");
        let session = session(&mut server);
        let window = server.show_in_session(one.pane, &tag("ann"), session, "team").unwrap();
        let seen = row(&mut server, one.pane);
        assert!(
            !seen.is_hidden && seen.is_teamd_window && seen.window == window && seen.session == session,
            "{seen:?}"
        );
        server.show_in_window(other.pane, &tag("bob"), window).unwrap();
        assert_eq!(
            (row(&mut server, other.pane).window, row(&mut server, other.pane).pid),
            (window, other.pid)
        );
        assert!(sessions(bench).is_empty(), "it ends with its last pane");
    });
}

#[test]
fn hidden_pane_can_be_captured_labelled_and_killed() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, _other) = two(&mut server);
        server.hide(one.pane, &tag("ann"), "team").unwrap();
        server.set_label(one.pane, &tag("ann"), &label("x")).unwrap();
        server.capture(one.pane, &tag("ann"), None).unwrap();
        assert_eq!(server.kill(one.pane, &tag("ann")).unwrap(), KillOutcome::Killed);
        assert!(sessions(bench).is_empty());
    });
}

#[test]
fn pane_with_another_tag_cannot_be_hidden_or_shown() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        let (stranger, session) = (tag("eve"), session(&mut server));
        for refused in [
            server.hide(one.pane, &stranger, "team"),
            server.hide("%0".parse().unwrap(), &stranger, "team"),
            server.show_in_window(one.pane, &stranger, other.window),
            server.show_in_session(one.pane, &stranger, session, "team").map(drop),
        ] {
            assert!(matches!(refused, Err(Error::NotOwned { .. })), "{refused:?}");
        }
        let gone = server.hide("%9999".parse().unwrap(), &stranger, "team");
        assert!(matches!(gone, Err(Error::PaneNotFound { .. })), "{gone:?}");
        let name = server.hide(one.pane, &tag("ann"), "#(touch x)");
        assert!(matches!(name, Err(Error::InvalidArgument { .. })), "{name:?}");
        assert_eq!(row(&mut server, one.pane).window, one.window);
        assert!(sessions(bench).is_empty());
    });
}

#[test]
fn last_pane_of_a_session_can_be_hidden_and_shown() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = server.new_session("team", "one", &idle_command()).unwrap();
        server.tag_pane(made.pane, &tag("ann"), &label("ann")).unwrap();
        server.hide(made.pane, &tag("ann"), "one").unwrap();
        assert!(row(&mut server, made.pane).is_hidden);
        assert!(!bench.run(["list-sessions", "-F", "#{session_name}"]).lines().any(|name| name == "team"));
        server.show_in_named_session(made.pane, &tag("ann"), "team", "one").unwrap();
        bench.run(["list-sessions"]);
        let shown = row(&mut server, made.pane);
        assert!(!shown.is_hidden, "it stays with nobody in it");
        let beside =
            server.list_panes().unwrap().into_iter().filter(|row| row.session == shown.session).count();
        assert_eq!(beside, 1);
    });
}

#[test]
fn users_pane_and_zoom_are_unchanged() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        let window = one.window.to_string();
        let own = bench.run(["split-window", "-t", &window, "-P", "-F", "#{pane_id}", "sleep", "1000"]);
        let own = own.lines().next().unwrap().to_owned();
        bench.run(["resize-pane", "-Z", "-t", &own]);
        let look = || bench.run(["display-message", "-p", "-t", &window, "#{window_zoomed_flag} #{pane_id}"]);
        assert_eq!(look(), format!("1 {own}"));
        server.hide(one.pane, &tag("ann"), "team").unwrap();
        assert_eq!(look(), format!("1 {own}"));
        server.apply_layout(other.window, "main-vertical").unwrap();
        server.show_in_window(one.pane, &tag("ann"), other.window).unwrap();
        assert_eq!(look(), format!("1 {own}"));
        assert_eq!(row(&mut server, one.pane).window, other.window);
    });
}

#[test]
fn layout_applies_only_to_teamd_windows() {
    on_default_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, _other) = two(&mut server);
        let theirs = row(&mut server, "%0".parse().unwrap()).window;
        bench.run(["split-window", "-d", "-t", &theirs.to_string(), "sleep", "1000"]);
        let shape = |window: &str| bench.run(["display-message", "-p", "-t", window, "#{window_layout}"]);
        let before = shape(&theirs.to_string());
        server.apply_layout(theirs, "even-horizontal").unwrap();
        assert_eq!(shape(&theirs.to_string()), before);
        let window = one.window.to_string();
        server.apply_layout(one.window, "even-horizontal").unwrap();
        assert!(shape(&window).contains('{'), "side by side: {}", shape(&window));
        server.apply_layout(one.window, "even-vertical").unwrap();
        assert!(shape(&window).contains('['), "one above the other: {}", shape(&window));
        server.apply_layout("@9999".parse().unwrap(), "tiled").unwrap();
    });
}

#[test]
fn main_pane_is_the_largest_at_any_size() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, _other) = two(&mut server);
        server.split(one.window, &idle_command()).unwrap();
        let window = one.window.to_string();
        let resize = |x, y| bench.run(["resize-window", "-t", &window, "-x", x, "-y", y]);
        let sizes = |field: &str| -> Vec<u32> {
            // A hook of the odd server prints a line of its own.
            let all = bench.run(["list-panes", "-t", &window, "-F", field]);
            all.lines().filter_map(|size| size.parse().ok()).collect()
        };
        for (layout, field) in [("main-vertical", "#{pane_width}"), ("main-horizontal", "#{pane_height}")] {
            for (least, x, y) in [(8, "80", "24"), (18, "200", "50")] {
                resize(x, y);
                server.apply_layout(one.window, layout).unwrap();
                let seen = sizes(field);
                assert!(seen[0] > seen[1] && seen[1..].iter().all(|size| *size >= least), "{seen:?}");
            }
            resize("80", "24");
            let seen = sizes(field);
            assert!(seen[0] > seen[1] && seen[0] > seen[2], "{layout}: {seen:?}");
        }
    });
}

#[test]
fn full_window_rejects_a_hidden_pane() {
    on_default_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        server.hide(one.pane, &tag("ann"), "team").unwrap();
        while server.split(other.window, &idle_command()).is_ok() {}
        let full = server.show_in_window(one.pane, &tag("ann"), other.window);
        assert!(matches!(full, Err(Error::NoSpace { window }) if window == other.window), "{full:?}");
        assert!(row(&mut server, one.pane).is_hidden);
        assert!(bench.run(["has-session", "-t", "=_teamd-hidden"]).is_empty());
    });
}
