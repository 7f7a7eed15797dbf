//! Tests that panes are hidden and shown again while other panes stay in place.

use tmux::{CreatedPane, Error, KillOutcome, PanePlace, PaneRow, TmuxServer};

use crate::test_server::{
    TestServer, idle_command, label, on_all_servers, on_default_servers, tag, tag_created,
};

/// Returns the row of a pane that exists.
pub(crate) fn row(server: &mut TmuxServer, pane: tmux::PaneId) -> PaneRow {
    server.list_panes().unwrap().into_iter().find(|row| row.pane == pane).unwrap()
}

/// Returns the user's session.
fn user_session(server: &mut TmuxServer) -> tmux::SessionId {
    server.pane_session("%0".parse().unwrap()).unwrap()
}

/// Creates a window with two panes and tags them `ann` and `bob`.
pub(crate) fn create_two_panes(server: &mut TmuxServer) -> (CreatedPane, CreatedPane) {
    let session = user_session(server);
    let ann = server.new_window(session, "team", &idle_command()).unwrap();
    let bob = server.split(ann.window, &idle_command()).unwrap();
    tag_created(server, &ann, &tag("ann"), &label("ann"));
    server.tag_pane(bob.pane, &tag("bob"), &label("bob")).unwrap();
    (ann, bob)
}

/// Returns the names of the existing sessions of hidden panes.
fn sessions_of_hidden_panes(fixture: &TestServer) -> Vec<String> {
    let all = fixture.run(["list-sessions", "-F", "#{session_name}"]);
    all.lines().filter(|name| name.ends_with("hidden")).map(ToOwned::to_owned).collect()
}

#[test]
fn hidden_pane_keeps_its_process_and_returns() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, bob) = create_two_panes(&mut server);
        for _ in 0..2 {
            server.hide(ann.pane, &tag("ann"), "team").unwrap();
            let hidden = row(&mut server, ann.pane);
            assert!(hidden.is_hidden && hidden.pid == ann.pid, "{hidden:?}");
            assert_ne!(hidden.window, ann.window);
        }
        assert!(!row(&mut server, bob.pane).is_hidden);
        server.hide(bob.pane, &tag("bob"), "team").unwrap();
        assert_eq!(sessions_of_hidden_panes(fixture).len(), 1);
        let hidden = server.list_panes().unwrap().into_iter().filter(|row| row.is_hidden).count();
        assert_eq!(hidden, 2, "only the two panes are hidden");
        let session = user_session(&mut server);
        let window = server.show_in_session(ann.pane, &tag("ann"), session, "team").unwrap();
        let shown = row(&mut server, ann.pane);
        assert!(
            !shown.is_hidden && shown.is_teamd_window && shown.window == window && shown.session == session,
            "{shown:?}"
        );
        server.show_in_window(bob.pane, &tag("bob"), window, PanePlace::Below(ann.pane)).unwrap();
        assert_eq!((row(&mut server, bob.pane).window, row(&mut server, bob.pane).pid), (window, bob.pid));
        assert!(
            sessions_of_hidden_panes(fixture).is_empty(),
            "the session of hidden panes ends with its last pane"
        );
    });
}

#[test]
fn hidden_pane_can_be_captured_labelled_and_killed() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, _bob) = create_two_panes(&mut server);
        server.hide(ann.pane, &tag("ann"), "team").unwrap();
        server.set_label(ann.pane, &tag("ann"), &label("x")).unwrap();
        server.capture(ann.pane, &tag("ann"), None).unwrap();
        assert_eq!(server.kill(ann.pane, &tag("ann")).unwrap(), KillOutcome::Killed);
        assert!(sessions_of_hidden_panes(fixture).is_empty());
    });
}

#[test]
fn pane_with_another_tag_cannot_be_hidden_or_shown() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, bob) = create_two_panes(&mut server);
        let (other_tag, session) = (tag("eve"), user_session(&mut server));
        for result in [
            server.hide(ann.pane, &other_tag, "team"),
            server.hide("%0".parse().unwrap(), &other_tag, "team"),
            server.show_in_window(ann.pane, &other_tag, bob.window, PanePlace::Below(bob.pane)),
            server.show_in_session(ann.pane, &other_tag, session, "team").map(drop),
        ] {
            assert!(matches!(result, Err(Error::NotOwned { .. })), "{result:?}");
        }
        let missing = server.hide("%9999".parse().unwrap(), &other_tag, "team");
        assert!(matches!(missing, Err(Error::PaneNotFound { .. })), "{missing:?}");
        let name = server.hide(ann.pane, &tag("ann"), "#(touch x)");
        assert!(matches!(name, Err(Error::InvalidArgument { .. })), "{name:?}");
        assert_eq!(row(&mut server, ann.pane).window, ann.window);
        assert!(sessions_of_hidden_panes(fixture).is_empty());
    });
}

#[test]
fn last_pane_of_a_session_can_be_hidden_and_shown() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = server.new_session("team", "one", &idle_command()).unwrap();
        server.tag_pane(created.pane, &tag("ann"), &label("ann")).unwrap();
        server.hide(created.pane, &tag("ann"), "one").unwrap();
        assert!(row(&mut server, created.pane).is_hidden);
        assert!(!fixture.run(["list-sessions", "-F", "#{session_name}"]).lines().any(|name| name == "team"));
        server.show_in_named_session(created.pane, &tag("ann"), "team", "one").unwrap();
        fixture.run(["list-sessions"]);
        let shown = row(&mut server, created.pane);
        assert!(!shown.is_hidden, "the session exists without a client");
        let panes =
            server.list_panes().unwrap().into_iter().filter(|row| row.session == shown.session).count();
        assert_eq!(panes, 1);
    });
}

#[test]
fn pane_and_zoom_of_the_user_are_unchanged() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, bob) = create_two_panes(&mut server);
        let window = ann.window.to_string();
        let user_pane =
            fixture.run(["split-window", "-t", &window, "-P", "-F", "#{pane_id}", "sleep", "1000"]);
        let user_pane = user_pane.lines().next().unwrap().to_owned();
        fixture.run(["resize-pane", "-Z", "-t", &user_pane]);
        let zoom_and_pane =
            || fixture.run(["display-message", "-p", "-t", &window, "#{window_zoomed_flag} #{pane_id}"]);
        assert_eq!(zoom_and_pane(), format!("1 {user_pane}"));
        server.hide(ann.pane, &tag("ann"), "team").unwrap();
        assert_eq!(zoom_and_pane(), format!("1 {user_pane}"));
        server.apply_layout(bob.window, "main-vertical").unwrap();
        server.show_in_window(ann.pane, &tag("ann"), bob.window, PanePlace::Above(bob.pane)).unwrap();
        assert_eq!(zoom_and_pane(), format!("1 {user_pane}"));
        assert_eq!(row(&mut server, ann.pane).window, bob.window);
    });
}

#[test]
fn full_window_rejects_a_hidden_pane() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, bob) = create_two_panes(&mut server);
        server.hide(ann.pane, &tag("ann"), "team").unwrap();
        while server.split(bob.window, &idle_command()).is_ok() {}
        let full = server.show_in_window(ann.pane, &tag("ann"), bob.window, PanePlace::Above(bob.pane));
        assert!(matches!(full, Err(Error::NoSpace { window }) if window == bob.window), "{full:?}");
        assert!(row(&mut server, ann.pane).is_hidden);
        assert!(fixture.run(["has-session", "-t", "=_teamd-hidden"]).is_empty());
    });
}

/// The pane beside which a hidden pane is to stand has left the window.
#[test]
fn hidden_pane_joins_only_the_named_window() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, bob) = create_two_panes(&mut server);
        let session = user_session(&mut server);
        server.hide(ann.pane, &tag("ann"), "t").unwrap();
        let window = server.show_in_session(ann.pane, &tag("ann"), session, "t").unwrap();
        assert_ne!(window, bob.window);
        let cat = server.split(bob.window, &idle_command()).unwrap();
        server.hide(bob.pane, &tag("bob"), "t").unwrap();
        let beside_ann = PanePlace::Below(ann.pane);
        let refused = server.show_in_window(bob.pane, &tag("bob"), cat.window, beside_ann);
        assert!(matches!(refused, Err(Error::Rejected { .. })), "{refused:?}");
        assert!(row(&mut server, bob.pane).is_hidden);
        server.show_in_window(bob.pane, &tag("bob"), window, beside_ann).unwrap();
    });
}
