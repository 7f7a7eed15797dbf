//! Tests how panes are created, tagged, listed, captured and killed.

use std::path::PathBuf;

use tmux::{Error, KillOutcome, NextPane, PaneId, PaneRow, PaneToKill, ServerAddress, TmuxServer};

use crate::test_server::{
    TestServer, idle_command, label, on_all_servers, on_default_servers, strings, tag, tag_created,
    wait_until,
};

/// Returns the row of a pane. `None` if it does not exist.
fn row(server: &mut TmuxServer, pane: tmux::PaneId) -> Option<PaneRow> {
    server.list_panes().unwrap().into_iter().find(|row| row.pane == pane)
}

/// Returns the user's session.
fn main_session(fixture: &TestServer, server: &mut TmuxServer) -> tmux::SessionId {
    let pane = fixture.run(["list-panes", "-t", "=main:", "-F", "#{pane_id}"]);
    server.pane_session(pane.lines().next().unwrap().parse().unwrap()).unwrap()
}

#[test]
fn pane_is_created_tagged_captured_and_killed() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        assert!(server.is_alive());
        let session = main_session(fixture, &mut server);
        let first = server.new_window(session, "team", &idle_command()).unwrap();
        let second = server.split(first.window, &idle_command()).unwrap();
        assert_eq!((second.window, second.session), (first.window, session));
        server.tag_pane(second.pane, &tag("ann-1"), &label("x")).unwrap();
        server.apply_layout(first.window, "tiled").unwrap();
        let listed = row(&mut server, second.pane).unwrap();
        assert_eq!((listed.tag.as_deref(), listed.pid, listed.is_dead), (Some("ann-1"), second.pid, false));
        assert_eq!((listed.window, listed.session), (second.window, second.session));
        let size = fixture.run(["display-message", "-p", "-t", "=main:", "#{window_width} #{window_height}"]);
        assert_eq!(format!("{} {}", listed.width, listed.height), size);
        assert_eq!(row(&mut server, first.pane).unwrap().tag, None);
        assert_eq!(server.kill(second.pane, &tag("ann-1")).unwrap(), KillOutcome::Killed);
        assert_eq!(server.kill(second.pane, &tag("ann-1")).unwrap(), KillOutcome::NotFound);
    });
}

#[test]
fn new_pane_is_tagged_and_piped_in_one_round_trip() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let fifo = fixture.make_fifo("go");
        let script = "read go <\"$1\"; echo heard; exec sleep 1000";
        let first = server.new_session("team", "one", &idle_command()).unwrap();
        let created =
            server.split(first.window, &strings(["sh", "-c", script, "sh", fifo.to_str().unwrap()])).unwrap();
        let write_command = |name: &str| -> Vec<PathBuf> {
            vec!["/bin/sh".into(), "-c".into(), "exec cat >\"$1\"".into(), "sh".into(), fixture.path(name)]
        };
        let next = Some(NextPane { window: first.window, argv: &idle_command() });
        let outcome = server
            .tag_and_pipe(&created, &tag("ann"), &label("ann"), &write_command("record"), next)
            .unwrap();
        outcome.tagged.and(outcome.piped).unwrap();
        let next = outcome.next_pane.unwrap().unwrap();
        let panes: Vec<_> = server
            .list_window_panes(first.window)
            .unwrap()
            .into_iter()
            .map(|row| (row.pane, row.tag))
            .collect();
        assert_eq!(panes, [(first.pane, None), (created.pane, Some("ann".to_owned())), (next.pane, None)]);
        let result =
            server.tag_and_pipe(&created, &tag("bob"), &label("bob"), &write_command("another"), None);
        let result = result.unwrap().tagged;
        assert!(matches!(result, Err(Error::NotOwned { .. })), "{result:?}");
        fixture.write_file("go", "go\n");
        wait_until("the piped output", || {
            std::fs::read_to_string(fixture.path("record"))
                .is_ok_and(|text| text.contains("heard"))
                .then_some(())
        });
        assert!(!fixture.path("another").exists());
        assert_eq!(
            fixture.run(["show-options", "-pv", "-t", &created.pane.to_string(), "@teamd_name"]),
            "ann"
        );
    });
}

#[test]
fn kill_panes_kills_only_visible_tagged_panes_in_their_windows() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let first = server.new_session("team", "one", &idle_command()).unwrap();
        let names = ["ann", "bob", "carl", "dora"];
        let panes = names.map(|name| {
            let created = server.new_window(first.session, name, &idle_command()).unwrap();
            server.tag_pane(created.pane, &tag(name), &label(name)).unwrap();
            created
        });
        let [_, bob, carl, dora] = &panes;
        fixture.run(["join-pane", "-d", "-s", &dora.pane.to_string(), "-t", &first.pane.to_string()]);
        fixture.run(["split-window", "-t", &carl.pane.to_string(), "sleep 1000"]);
        fixture.run(["resize-pane", "-Z", "-t", &carl.window.to_string()]);
        let panes_to_kill = [0, 1, 2, 3].map(|index| {
            let pane = &panes[index];
            let name = if pane.pane == bob.pane { "another" } else { names[index] };
            PaneToKill { pane: pane.pane, tag: tag(name), window: pane.window }
        });
        let is_gone = server.kill_panes(&panes_to_kill).unwrap();
        assert_eq!(
            is_gone,
            [true, false, false, false],
            "bob has another tag, a zoomed pane hides carl, and dora is in another window"
        );
        assert_eq!(server.kill_panes(&panes_to_kill).unwrap(), is_gone, "a second call has the same result");
        for name in ["bob", "carl", "dora"] {
            let pane = panes[names.iter().position(|other| *other == name).unwrap()].pane;
            assert_eq!(server.kill(pane, &tag(name)).unwrap(), KillOutcome::Killed);
        }
    });
}

/// tmux up to version 3.6 crashes if a session ends in this way.
#[test]
fn kill_panes_never_ends_a_session() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let other = server.new_session("other", "one", &idle_command()).unwrap();
        let one = server.new_session("team", "one", &idle_command()).unwrap();
        let two = server.new_window(one.session, "two", &idle_command()).unwrap();
        let panes_to_kill = [(&one, "ann"), (&two, "bob")].map(|(created, name)| {
            server.tag_pane(created.pane, &tag(name), &label(name)).unwrap();
            PaneToKill { pane: created.pane, tag: tag(name), window: created.window }
        });
        assert_eq!(server.kill_panes(&panes_to_kill).unwrap(), [true, false]);
        assert_eq!(server.kill(two.pane, &tag("bob")).unwrap(), KillOutcome::Killed);
        assert!(
            server.list_panes().unwrap().iter().any(|row| row.pane == other.pane),
            "the server still runs"
        );
    });
}

#[test]
fn new_session_exists_without_clients() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = server.new_session("team", "one", &idle_command()).unwrap();
        // When this client exits, tmux destroys unattached sessions with `destroy-unattached`.
        fixture.run(["list-sessions"]);
        assert!(row(&mut server, created.pane).is_some());
        if server.version() > "3.2".parse().unwrap() {
            assert_eq!(row(&mut server, created.pane).unwrap().width, 200);
        }
        assert!(matches!(server.new_session("team", "one", &idle_command()), Err(Error::Rejected { .. })));
    });
}

#[test]
fn dead_pane_is_tagged_but_not_piped() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        fixture.run(["set-option", "-g", "remain-on-exit", "on"]);
        let session = main_session(fixture, &mut server);
        let first = server.new_window(session, "team", &idle_command()).unwrap();
        let created = server.split(first.window, &strings(["sh", "-c", "exit 0"])).unwrap();
        let query_dead = ["display-message", "-p", "-t", &created.pane.to_string(), "#{pane_dead}"];
        wait_until("the exit of the process", || (fixture.run(query_dead) == "1").then_some(()));
        let pipe_command = ["/bin/cat".into()];
        let outcome = server.tag_and_pipe(&created, &tag("ann"), &label("ann"), &pipe_command, None).unwrap();
        outcome.tagged.unwrap();
        assert!(matches!(outcome.piped, Err(Error::Rejected { .. })), "{:?}", outcome.piped);
        assert_eq!(server.kill(created.pane, &tag("ann")).unwrap(), KillOutcome::Killed);
    });
}

#[test]
fn new_window_is_last_and_not_selected() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let session = main_session(fixture, &mut server);
        fixture.run(["new-window", "-d", "-t", "=main:7", "sleep", "1000"]);
        let created = server.new_window(session, "team", &idle_command()).unwrap();
        tag_created(&mut server, &created, &tag("ann"), &label("ann"));
        let format = "#{window_index} #{window_active} #{window_name} #{automatic-rename} #{synchronize-panes} \
                      #{pane-border-status}";
        let options = fixture.run(["display-message", "-p", "-t", &created.pane.to_string(), format]);
        assert_eq!(options, "8 0 team 0 0 top");
        let window = created.window.to_string();
        assert_eq!(fixture.run(["show-options", "-wv", "-t", &window, "remain-on-exit"]), "off");
        let row = server.list_window_panes(created.window).unwrap().remove(0);
        assert_eq!((row.width, row.height), (created.width, created.height));
    });
}

#[test]
fn border_shows_the_label() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let session = main_session(fixture, &mut server);
        let created = server.new_window(session, "team", &idle_command()).unwrap();
        let border = |pane: PaneId| {
            fixture.run(["display-message", "-p", "-t", &pane.to_string(), "#{T:pane-border-format}"])
        };
        tag_created(&mut server, &created, &tag("ann"), &label("日本"));
        assert_eq!(border(created.pane).trim(), "#[fg=colour208]#[bold]日本#[default] 日本 | 日本");
        let untagged = server.split(created.window, &idle_command()).unwrap();
        assert!(border(untagged.pane).trim().parse::<u32>().is_ok());
    });
}

#[test]
fn capture_keeps_unicode() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let session = main_session(fixture, &mut server);
        let text = "printf '日本\\303\\n%%end 9 9 9\\n%%exit\\nlast\\n'; exec sleep 1000";
        let created = server.new_window(session, "team", &strings(["sh", "-c", text])).unwrap();
        server.tag_pane(created.pane, &tag("ann"), &label("")).unwrap();
        wait_until("text on the screen", || {
            let screen = server.capture(created.pane, &tag("ann"), None).unwrap();
            screen.contains("last").then_some(())
        });
        let screen = server.capture(created.pane, &tag("ann"), None).unwrap();
        assert!(screen.starts_with("日本"), "{screen}");
        assert!(screen.contains("\n%end 9 9 9\n%exit\nlast\n"), "{screen}");
        assert_eq!(server.capture(created.pane, &tag("ann"), Some(2)).unwrap(), "%exit\nlast");
    });
}

#[test]
fn full_window_is_a_distinct_error() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let session = main_session(fixture, &mut server);
        let created = server.new_window(session, "team", &idle_command()).unwrap();
        let full = (0..400).find_map(|_| server.split(created.window, &idle_command()).err()).unwrap();
        assert!(matches!(full, Error::NoSpace { window } if window == created.window), "{full}");
        let missing = server.split("@9999".parse().unwrap(), &idle_command()).unwrap_err();
        assert!(matches!(missing, Error::Rejected { .. }), "{missing}");
    });
}

#[test]
fn missing_targets_are_errors() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (pane, session) = ("%9999".parse().unwrap(), "$9999".parse().unwrap());
        assert!(matches!(server.pane_session(pane), Err(Error::PaneNotFound { .. })));
        assert!(matches!(server.new_window(session, "team", &idle_command()), Err(Error::Rejected { .. })));
        assert!(matches!(server.capture(pane, &tag("a"), None), Err(Error::NotOwned { .. })));
        assert!(server.tag_pane(pane, &tag("a"), &label("")).is_err());
        assert_eq!(server.kill(pane, &tag("a")).unwrap(), KillOutcome::NotFound);
    });
}

#[test]
fn server_is_found_by_name_or_started() {
    on_default_servers(|fixture| {
        let address = ServerAddress::Name(format!("teamd-test-{}", std::process::id()));
        let mut server = TmuxServer::connect_with(&fixture.program(), &address, Box::new(drop)).unwrap();
        assert!(server.epoch().socket_path.starts_with(fixture.path("")), "{}", server.epoch());
        assert!(server.is_alive());
        // Without this session the server would have only the hidden session, and would exit with
        // the connection.
        server.new_session("team", "one", &idle_command()).unwrap();
        let pid = server.epoch().pid;
        drop(server);
        let second = TmuxServer::connect_with(&fixture.program(), &address, Box::new(drop)).unwrap();
        assert_eq!(second.epoch().pid, pid);
        crate::test_server::signal("TERM", pid);
    });
}

#[test]
fn panes_are_in_the_order_of_their_creation() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let first = server.new_session("team", "one", &idle_command()).unwrap();
        let mut expected = vec![first.pane.to_string()];
        for _ in 0..6 {
            expected.push(server.split(first.window, &idle_command()).unwrap().pane.to_string());
            server.apply_layout(first.window, "tiled").unwrap();
        }
        let panes = fixture.run(["list-panes", "-t", &first.window.to_string(), "-F", "#{pane_id}"]);
        let panes: Vec<&str> =
            panes.lines().filter(|line| line.starts_with('%') && *line != "%exit spoofed").collect();
        assert_eq!(panes, expected);
    });
}
