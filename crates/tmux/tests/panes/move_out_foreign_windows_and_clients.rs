//! Tests that foreign windows, panes and clients are moved out of teamd's sessions, and are never
//! killed.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use tmux::{PaneId, ServerNotice, TmuxServer};

use crate::test_server::{TestServer, idle_command, label, on_all_servers, tag, tag_created, wait_until};

/// Starts a foreign program in one of teamd's sessions, with the tmux command `command`.
fn start_foreign_program(fixture: &TestServer, command: &str, session: &str) {
    fixture.run([command, "-d", "-t", &format!("={session}:"), "sleep", "4711"]);
}

/// Waits for a notice, and then moves all foreign windows, panes and clients out.
fn move_out(server: &mut TmuxServer, notices: &Receiver<ServerNotice>) {
    assert_eq!(notices.recv_timeout(Duration::from_secs(9)), Ok(ServerNotice::OwnSessionsUsed));
    server.move_out_foreigners().unwrap();
}

/// Connects, and discards the notices about the new hidden session.
fn connect(fixture: &TestServer) -> (TmuxServer, Receiver<ServerNotice>) {
    let (mut server, notices) = fixture.connect();
    // tmux sends the reply after the notices about the new session.
    assert!(server.is_alive());
    while notices.try_recv().is_ok() {}
    (server, notices)
}

/// Creates a pane and moves it to the session of hidden panes.
fn hide_pane(server: &mut TmuxServer) -> PaneId {
    let session = server.new_session("team", "0", &idle_command()).unwrap().session;
    let created = server.new_window(session, "team", &idle_command()).unwrap();
    tag_created(server, &created, &tag("ann"), &label(""));
    server.hide(created.pane, &tag("ann"), "team").unwrap();
    created.pane
}

/// Returns the name of each pane's session. Other lines are omitted, because a hook of the hostile
/// configuration prints lines too.
fn pane_sessions(fixture: &TestServer) -> Vec<String> {
    let panes = fixture.run(["list-panes", "-a", "-F", "pane #{session_name}"]);
    panes.lines().filter_map(|line| line.strip_prefix("pane ")).map(str::to_owned).collect()
}

/// Returns the session of the pane that runs the foreign program. `None` if there is no such pane.
fn session_of_foreign_program(fixture: &TestServer) -> Option<String> {
    let format = "#{session_name} #{pane_start_command}";
    let panes = fixture.run(["list-panes", "-a", "-F", format]);
    let line = panes.lines().find(|line| line.contains("4711"))?;
    line.split(' ').next().map(str::to_owned)
}

#[test]
fn window_in_the_hidden_session_is_moved_to_the_last_used_session() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let hidden = fixture.hidden_sessions().remove(0);
        start_foreign_program(fixture, "new-window", &hidden);
        move_out(&mut server, &notices);
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some("main"));
        assert!(server.is_alive());
    });
}

#[test]
fn pane_beside_the_idle_pane_is_moved_to_the_last_used_session() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let hidden = fixture.hidden_sessions().remove(0);
        start_foreign_program(fixture, "split-window", &hidden);
        move_out(&mut server, &notices);
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some("main"));
        assert_eq!(
            pane_sessions(fixture).iter().filter(|name| **name == hidden).count(),
            1,
            "only the idle pane remains"
        );
    });
}

#[test]
fn window_in_the_session_of_hidden_panes_is_moved_and_the_hidden_pane_stays() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let hidden_pane = hide_pane(&mut server);
        while notices.try_recv().is_ok() {}
        start_foreign_program(fixture, "new-window", "_teamd-hidden");
        move_out(&mut server, &notices);
        let target = session_of_foreign_program(fixture).unwrap();
        assert!(!target.starts_with("_teamd-"), "{target}");
        assert!(server.list_panes().unwrap().iter().any(|row| row.pane == hidden_pane && row.is_hidden));
    });
}

#[test]
fn client_in_the_hidden_session_is_switched_to_the_last_used_session() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let _user = fixture.attach_user();
        let hidden = fixture.hidden_sessions().remove(0);
        let clients = fixture.run(["list-clients", "-t", "=main", "-F", "#{client_name}"]);
        while notices.try_recv().is_ok() {}
        fixture.run(["switch-client", "-c", &clients, "-t", &format!("={hidden}")]);
        move_out(&mut server, &notices);
        assert_eq!(fixture.run(["list-clients", "-t", "=main", "-F", "#{client_name}"]), clients);
        assert!(server.is_alive());
    });
}

#[test]
fn client_in_the_session_of_hidden_panes_is_switched_too() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        hide_pane(&mut server);
        let _user = fixture.attach_user();
        let client = fixture.run(["list-clients", "-t", "=main", "-F", "#{client_name}"]);
        while notices.try_recv().is_ok() {}
        fixture.run(["switch-client", "-c", &client, "-t", "=_teamd-hidden"]);
        move_out(&mut server, &notices);
        assert_eq!(fixture.run(["list-clients", "-t", "=_teamd-hidden", "-F", "#{client_name}"]), "");
    });
}

#[test]
fn foreign_window_stays_in_the_hidden_session_if_there_is_no_other_session() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let hidden = fixture.hidden_sessions().remove(0);
        fixture.run(["kill-session", "-t", "=main"]);
        start_foreign_program(fixture, "new-window", &hidden);
        move_out(&mut server, &notices);
        drop(server);
        wait_until("the exit of the idle pane", || (pane_sessions(fixture).len() == 1).then_some(()));
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some(hidden.as_str()));
        let (mut next_server, _notices) = fixture.connect();
        next_server.move_out_foreigners().unwrap();
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some(hidden.as_str()));
    });
}
