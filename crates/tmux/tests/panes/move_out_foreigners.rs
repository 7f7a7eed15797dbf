//! What other people put into the sessions of this crate is moved out, and is never killed.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use tmux::{ServerNotice, TmuxServer};

use crate::test_server::{TestServer, idle_command, label, on_all_servers, tag, tag_created, wait_until};

/// Runs the foreign program in a session of this crate. `command` is the tmux command for it.
fn run_foreign_program(fixture: &TestServer, command: &str, session: &str) {
    fixture.run([command, "-d", "-t", &format!("={session}:"), "sleep", "4711"]);
}

/// Waits for a notice, and then moves everything foreign out.
fn move_out(server: &mut TmuxServer, notices: &Receiver<ServerNotice>) {
    assert_eq!(notices.recv_timeout(Duration::from_secs(9)), Ok(ServerNotice::OwnSessionsUsed));
    server.move_out_foreigners().unwrap();
}

/// Connects, and forgets the notices about the new hidden session.
fn connect(fixture: &TestServer) -> (TmuxServer, Receiver<ServerNotice>) {
    let (mut server, notices) = fixture.connect();
    // tmux sends the reply after the notices about the new session.
    assert!(server.is_alive());
    while notices.try_recv().is_ok() {}
    (server, notices)
}

/// The session of each pane. A hook of the hostile configuration prints lines of its own.
fn pane_sessions(fixture: &TestServer) -> Vec<String> {
    let panes = fixture.run(["list-panes", "-a", "-F", "pane #{session_name}"]);
    panes.lines().filter_map(|line| line.strip_prefix("pane ")).map(str::to_owned).collect()
}

/// The session of the pane that runs the foreign program. `None` if there is no such pane.
fn session_of_foreign_program(fixture: &TestServer) -> Option<String> {
    let format = "#{session_name} #{pane_start_command}";
    let panes = fixture.run(["list-panes", "-a", "-F", format]);
    let found = panes.lines().find(|line| line.contains("4711"))?;
    found.split(' ').next().map(str::to_owned)
}

#[test]
fn window_that_was_put_into_the_hidden_session_is_moved_to_the_last_used_session() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let hidden = fixture.hidden_sessions().remove(0);
        run_foreign_program(fixture, "new-window", &hidden);
        move_out(&mut server, &notices);
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some("main"));
        assert!(server.is_alive());
    });
}

#[test]
fn pane_beside_the_idle_pane_is_moved_to_a_window_of_its_own() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let hidden = fixture.hidden_sessions().remove(0);
        run_foreign_program(fixture, "split-window", &hidden);
        move_out(&mut server, &notices);
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some("main"));
        assert_eq!(pane_sessions(fixture).iter().filter(|name| **name == hidden).count(), 1, "the idle pane");
    });
}

#[test]
fn window_in_the_session_of_hidden_panes_is_moved_and_the_hidden_pane_stays() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let session = server.new_session("team", "0", &idle_command()).unwrap().session;
        let created = server.new_window(session, "team", &idle_command()).unwrap();
        tag_created(&mut server, &created, &tag("ann"), &label(""));
        server.hide(created.pane, &tag("ann"), "team").unwrap();
        while notices.try_recv().is_ok() {}
        run_foreign_program(fixture, "new-window", "_teamd-hidden");
        move_out(&mut server, &notices);
        let place = session_of_foreign_program(fixture).unwrap();
        assert!(!place.starts_with("_teamd-"), "{place}");
        assert!(server.list_panes().unwrap().iter().any(|row| row.pane == created.pane && row.is_hidden));
    });
}

#[test]
fn client_in_the_hidden_session_is_switched_to_the_last_used_session() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let _person = fixture.attach_user();
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
fn window_in_the_hidden_session_outlives_it_if_there_is_no_other_session() {
    on_all_servers(|fixture| {
        let (mut server, notices) = connect(fixture);
        let hidden = fixture.hidden_sessions().remove(0);
        fixture.run(["kill-session", "-t", "=main"]);
        run_foreign_program(fixture, "new-window", &hidden);
        move_out(&mut server, &notices);
        drop(server);
        wait_until("the end of the idle pane", || (pane_sessions(fixture).len() == 1).then_some(()));
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some(hidden.as_str()));
        let (mut next, _notices) = fixture.connect();
        next.move_out_foreigners().unwrap();
        assert_eq!(session_of_foreign_program(fixture).as_deref(), Some(hidden.as_str()));
    });
}
