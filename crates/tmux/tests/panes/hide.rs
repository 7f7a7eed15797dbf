//! Panes go out of sight and come back, and nothing else moves.

use tmux::{Created, Error, Killed, PaneRow, Server};

use crate::bench::{Bench, claim, everywhere, idle, label, owner, plainly};

fn row(server: &mut Server, pane: tmux::PaneId) -> PaneRow {
    server.list().unwrap().into_iter().find(|row| row.pane == pane).unwrap()
}

fn session(server: &mut Server) -> tmux::SessionId {
    server.session_of("%0".parse().unwrap()).unwrap()
}

/// Two panes of ours in a window.
fn two(server: &mut Server) -> (Created, Created) {
    let session = session(server);
    let one = server.new_window(session, "team", &idle()).unwrap();
    let other = server.split(one.window, &idle()).unwrap();
    claim(server, one, &owner("ann"), &label("ann"));
    server.claim(other.pane, &owner("bob"), &label("bob")).unwrap();
    (one, other)
}

fn sessions(bench: &Bench) -> Vec<String> {
    let all = bench.run(["list-sessions", "-F", "#{session_name}"]);
    all.lines().filter(|name| name.ends_with("hidden")).map(ToOwned::to_owned).collect()
}

#[test]
fn a_hidden_pane_is_out_of_its_window_with_the_same_process_and_comes_back_beside_the_others() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        for _ in 0..2 {
            server.hide(one.pane, &owner("ann"), "team").unwrap();
            let seen = row(&mut server, one.pane);
            assert!(seen.hidden && seen.pid == one.pid && seen.window != one.window, "{seen:?}");
        }
        assert!(!row(&mut server, other.pane).hidden);
        server.hide(other.pane, &owner("bob"), "team").unwrap();
        assert_eq!(sessions(bench).len(), 1);
        let hidden = server.list().unwrap().into_iter().filter(|row| row.hidden).count();
        assert_eq!(hidden, 2, "nothing but what was hidden");
        let session = session(&mut server);
        let window = server.put_into(one.pane, &owner("ann"), session, "team").unwrap();
        let seen = row(&mut server, one.pane);
        assert!(!seen.hidden && seen.home && seen.window == window && seen.session == session, "{seen:?}");
        server.put_beside(other.pane, &owner("bob"), window).unwrap();
        assert_eq!(
            (row(&mut server, other.pane).window, row(&mut server, other.pane).pid),
            (window, other.pid)
        );
        assert!(sessions(bench).is_empty(), "it ends with its last pane");
    });
}

#[test]
fn a_hidden_pane_is_read_labelled_and_killed_as_any() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, _other) = two(&mut server);
        server.hide(one.pane, &owner("ann"), "team").unwrap();
        server.label(one.pane, &owner("ann"), &label("x")).unwrap();
        server.capture(one.pane, &owner("ann"), None).unwrap();
        assert_eq!(server.kill(one.pane, &owner("ann")).unwrap(), Killed::Killed);
        assert!(sessions(bench).is_empty());
    });
}

#[test]
fn another_owners_pane_is_neither_hidden_nor_shown() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        let (stranger, session) = (owner("eve"), session(&mut server));
        for refused in [
            server.hide(one.pane, &stranger, "team"),
            server.hide("%0".parse().unwrap(), &stranger, "team"),
            server.put_beside(one.pane, &stranger, other.window),
            server.put_into(one.pane, &stranger, session, "team").map(drop),
        ] {
            assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
        }
        let gone = server.hide("%9999".parse().unwrap(), &stranger, "team");
        assert!(matches!(gone, Err(Error::NoPane { .. })), "{gone:?}");
        let name = server.hide(one.pane, &owner("ann"), "#(touch x)");
        assert!(matches!(name, Err(Error::Invalid { .. })), "{name:?}");
        assert_eq!(row(&mut server, one.pane).window, one.window);
        assert!(sessions(bench).is_empty());
    });
}

#[test]
fn the_only_pane_of_the_only_window_of_a_session_is_hidden_and_shown_in_a_session_of_that_name() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = server.new_session("team", "one", &idle()).unwrap();
        server.claim(made.pane, &owner("ann"), &label("ann")).unwrap();
        server.hide(made.pane, &owner("ann"), "one").unwrap();
        assert!(row(&mut server, made.pane).hidden);
        assert!(!bench.run(["list-sessions", "-F", "#{session_name}"]).lines().any(|name| name == "team"));
        server.put_into_named(made.pane, &owner("ann"), "team", "one").unwrap();
        bench.run(["list-sessions"]);
        let shown = row(&mut server, made.pane);
        assert!(!shown.hidden, "it stays with nobody in it");
        let beside = server.list().unwrap().into_iter().filter(|row| row.session == shown.session).count();
        assert_eq!(beside, 1);
    });
}

#[test]
fn a_persons_own_pane_in_the_window_and_its_zoom_are_left_alone() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        let window = one.window.to_string();
        let own = bench.run(["split-window", "-t", &window, "-P", "-F", "#{pane_id}", "sleep", "1000"]);
        let own = own.lines().next().unwrap().to_owned();
        bench.run(["resize-pane", "-Z", "-t", &own]);
        let look = || bench.run(["display-message", "-p", "-t", &window, "#{window_zoomed_flag} #{pane_id}"]);
        assert_eq!(look(), format!("1 {own}"));
        server.hide(one.pane, &owner("ann"), "team").unwrap();
        assert_eq!(look(), format!("1 {own}"));
        server.lay_out(other.window, "main-vertical").unwrap();
        server.put_beside(one.pane, &owner("ann"), other.window).unwrap();
        assert_eq!(look(), format!("1 {own}"));
        assert_eq!(row(&mut server, one.pane).window, other.window);
    });
}

#[test]
fn a_layout_is_given_to_windows_of_ours_alone() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, _other) = two(&mut server);
        let theirs = row(&mut server, "%0".parse().unwrap()).window;
        bench.run(["split-window", "-d", "-t", &theirs.to_string(), "sleep", "1000"]);
        let shape = |window: &str| bench.run(["display-message", "-p", "-t", window, "#{window_layout}"]);
        let before = shape(&theirs.to_string());
        server.lay_out(theirs, "even-horizontal").unwrap();
        assert_eq!(shape(&theirs.to_string()), before);
        let window = one.window.to_string();
        server.lay_out(one.window, "even-horizontal").unwrap();
        assert!(shape(&window).contains('{'), "side by side: {}", shape(&window));
        server.lay_out(one.window, "even-vertical").unwrap();
        assert!(shape(&window).contains('['), "one above the other: {}", shape(&window));
        server.lay_out("@9999".parse().unwrap(), "tiled").unwrap();
    });
}

#[test]
fn a_main_pane_is_the_largest_whatever_the_terminals_size_and_leaves_the_others_theirs() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, _other) = two(&mut server);
        server.split(one.window, &idle()).unwrap();
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
                server.lay_out(one.window, layout).unwrap();
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
fn a_full_window_takes_no_hidden_pane_back() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        let (one, other) = two(&mut server);
        server.hide(one.pane, &owner("ann"), "team").unwrap();
        while server.split(other.window, &idle()).is_ok() {}
        let full = server.put_beside(one.pane, &owner("ann"), other.window);
        assert!(matches!(full, Err(Error::NoSpace { window }) if window == other.window), "{full:?}");
        assert!(row(&mut server, one.pane).hidden);
        assert!(bench.run(["has-session", "-t", "=_teamd-hidden"]).is_empty());
    });
}
