//! Tests that a pane without the expected tag stays unchanged, even if it had the tag earlier.

use tmux::{Error, KillOutcome, TaggedPane, TmuxServer};

use crate::test_server::{
    TestServer, idle_command, label, on_all_servers, on_default_servers, strings, tag, wait_until,
};

/// Creates a session with one pane.
fn create_session(server: &mut TmuxServer) -> tmux::CreatedPane {
    server.new_session("team", "one", &idle_command()).unwrap()
}

/// Returns the ids of all panes.
fn pane_ids(fixture: &TestServer) -> Vec<String> {
    fixture.run(["list-panes", "-a", "-F", "#{pane_id}"]).lines().map(ToOwned::to_owned).collect()
}

#[test]
fn pane_with_another_tag_stays_unchanged() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = create_session(&mut server);
        let other_tag = tag("bob");
        assert_eq!(server.kill(created.pane, &other_tag).unwrap(), KillOutcome::NotOwned);
        server.tag_pane(created.pane, &tag("ann"), &label("ann")).unwrap();
        assert_eq!(server.kill(created.pane, &other_tag).unwrap(), KillOutcome::NotOwned);
        let file = fixture.path("record");
        for result in [
            server.tag_pane(created.pane, &other_tag, &label("x")),
            server.set_label(created.pane, &other_tag, &label("x")),
            server.pipe_output(created.pane, &other_tag, &["/bin/cat".into(), file]),
            server.capture(created.pane, &other_tag, None).map(drop),
        ] {
            assert!(matches!(result, Err(Error::NotOwned { .. })), "{result:?}");
        }
        let name = fixture.run(["show-options", "-pv", "-t", &created.pane.to_string(), "@teamd_name"]);
        assert_eq!(name, "ann");
        assert!(pane_ids(fixture).contains(&created.pane.to_string()));
    });
}

#[test]
fn captures_skip_panes_with_another_tag() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let mut panes = Vec::new();
        let session = server.new_session("team", "0", &idle_command()).unwrap().session;
        for n in 0..20 {
            let command = format!("echo screen {n}; exec sleep 1000");
            let created = server.new_window(session, "team", &strings(["sh", "-c", &command])).unwrap();
            server.tag_pane(created.pane, &tag("ann"), &label("")).unwrap();
            panes.push(TaggedPane { pane: created.pane, tag: tag("ann") });
        }
        panes[3].tag = tag("bob");
        panes[17].pane = "%4711".parse().unwrap();
        let screens = wait_until("text on all screens", || {
            let screens = server.capture_panes(&panes).unwrap();
            let is_drawn =
                |screen: &Option<String>| screen.as_ref().is_none_or(|text| text.contains("screen"));
            screens.iter().all(is_drawn).then_some(screens)
        });
        let first_lines: Vec<_> = screens
            .iter()
            .map(|screen| screen.as_deref().map(|text| text.lines().next().unwrap_or("")))
            .collect();
        let texts: Vec<String> = (0..20).map(|n| format!("screen {n}")).collect();
        let expected = texts.iter().enumerate();
        let expected = expected.map(|(n, text)| (n != 3 && n != 17).then_some(text.as_str()));
        assert_eq!(first_lines, expected.collect::<Vec<_>>());
        assert!(server.capture_panes(&[]).unwrap().is_empty());
    });
}

#[test]
fn moved_pane_keeps_its_tag() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = create_session(&mut server);
        let pane = created.pane.to_string();
        server.tag_pane(created.pane, &tag("ann"), &label("ann")).unwrap();
        server.tag_pane(created.pane, &tag("ann"), &label("again")).unwrap();
        fixture.run(["join-pane", "-d", "-s", &pane, "-t", "=main:"]);
        server.set_label(created.pane, &tag("ann"), &label("moved")).unwrap();
        assert_eq!(server.kill(created.pane, &tag("ann")).unwrap(), KillOutcome::Killed);
    });
}

/// `respawn-pane` keeps the options of the pane and replaces its process.
#[test]
fn respawned_pane_loses_its_tag() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = create_session(&mut server);
        let pane = created.pane.to_string();
        server.tag_pane(created.pane, &tag("ann"), &label("ann")).unwrap();
        fixture.run(["respawn-pane", "-k", "-t", &pane, "sleep", "1000"]);
        for result in [
            server.tag_pane(created.pane, &tag("ann"), &label("x")),
            server.set_label(created.pane, &tag("ann"), &label("x")),
            server.capture(created.pane, &tag("ann"), None).map(drop),
            server.hide(created.pane, &tag("ann"), "x"),
        ] {
            assert!(matches!(result, Err(Error::NotOwned { .. })), "{result:?}");
        }
        assert_eq!(server.kill(created.pane, &tag("bob")).unwrap(), KillOutcome::NotOwned);
        assert!(fixture.run(["show-options", "-p", "-t", &pane]).contains("@teamd_spawn ann"));
        assert_eq!(server.kill(created.pane, &tag("ann")).unwrap(), KillOutcome::NotOwned);
        assert_eq!(fixture.run(["show-options", "-p", "-t", &pane]), "");
        assert!(pane_ids(fixture).contains(&pane));
    });
}

#[test]
fn pane_ids_of_another_server_are_rejected() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let pane = "%0".parse().unwrap();
        server.tag_pane(pane, &tag("ann"), &label("")).unwrap();
        let old_pid = server.epoch().pid;
        fixture.run(["kill-server"]);
        crate::test_server::wait_until("the start of another server", || {
            let output =
                fixture.command(["new-session", "-d", "-s", "main", "--", "sleep", "1000"]).output().unwrap();
            output.status.success().then_some(())
        });
        fixture.run(["set-option", "-p", "-t", "%0", "@teamd_spawn", "ann"]);
        let error = server.kill(pane, &tag("ann")).unwrap_err();
        assert!(
            matches!(&error, Error::OtherServer { expected, found } if expected.pid == old_pid && found.pid != old_pid)
        );
        assert!(server.split("@0".parse().unwrap(), &idle_command()).is_err());
        assert!(!server.is_alive());
        assert_eq!(pane_ids(fixture), ["%0"]);
        assert!(fixture.hidden_sessions().is_empty());
    });
}

#[test]
fn list_parses_any_tag_value() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = create_session(&mut server);
        let value = "a b\n%99 @9 $9 1 0 0 1 1 ann";
        fixture.run(["set-option", "-p", "-t", &created.pane.to_string(), "@teamd_spawn", value]);
        let rows = server.list_panes().unwrap();
        let row = rows.iter().find(|row| row.pane == created.pane).unwrap();
        assert_eq!(row.tag.as_deref(), Some("a_b__99__9__9_1_0_0_1_1_ann"));
        assert!(row.tag.as_deref().unwrap().parse::<tmux::PaneTag>().is_err());
    });
}
