//! Nothing happens to a pane that is not, or no longer, what it was.

use tmux::{Error, KillOutcome, TmuxServer};

use crate::test_server::{
    TestServer, idle_command, label, on_all_servers, on_default_servers, strings, tag, wait_until,
};

fn window(server: &mut TmuxServer) -> tmux::CreatedPane {
    server.new_session("team", "one", &idle_command()).unwrap()
}

fn panes(bench: &TestServer) -> Vec<String> {
    bench.run(["list-panes", "-a", "-F", "#{pane_id}"]).lines().map(ToOwned::to_owned).collect()
}

#[test]
fn pane_with_another_tag_is_left_alone() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let stranger = tag("bob");
        assert_eq!(server.kill(made.pane, &stranger).unwrap(), KillOutcome::NotOwned);
        server.tag_pane(made.pane, &tag("ann"), &label("ann")).unwrap();
        assert_eq!(server.kill(made.pane, &stranger).unwrap(), KillOutcome::NotOwned);
        let file = bench.path("record");
        for refused in [
            server.tag_pane(made.pane, &stranger, &label("x")),
            server.set_label(made.pane, &stranger, &label("x")),
            server.pipe_output(made.pane, &stranger, &["/bin/cat".into(), file]),
            server.capture(made.pane, &stranger, None).map(drop),
        ] {
            assert!(matches!(refused, Err(Error::NotOwned { .. })), "{refused:?}");
        }
        let name = bench.run(["show-options", "-pv", "-t", &made.pane.to_string(), "@teamd_name"]);
        assert_eq!(name, "ann");
        assert!(panes(bench).contains(&made.pane.to_string()));
    });
}

#[test]
fn captures_skip_panes_with_another_tag() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let mut panes = Vec::new();
        let session = server.new_session("team", "0", &idle_command()).unwrap().session;
        for n in 0..20 {
            let command = format!("echo screen {n}; exec sleep 1000");
            let made = server.new_window(session, "team", &strings(["sh", "-c", &command])).unwrap();
            server.tag_pane(made.pane, &tag("ann"), &label("")).unwrap();
            panes.push((made.pane, tag("ann")));
        }
        panes[3].1 = tag("bob");
        panes[17].0 = "%4711".parse().unwrap();
        let all = wait_until("all are drawn", || {
            let screens = server.capture_panes(&panes).unwrap();
            let drawn = |screen: &Option<String>| screen.as_ref().is_none_or(|text| text.contains("screen"));
            screens.iter().all(drawn).then_some(screens)
        });
        let first_lines: Vec<_> = all
            .iter()
            .map(|screen| screen.as_deref().map(|text| text.lines().next().unwrap_or("")))
            .collect();
        let wanted: Vec<String> = (0..20).map(|n| format!("screen {n}")).collect();
        let wanted = wanted.iter().enumerate();
        let wanted = wanted.map(|(n, text)| (n != 3 && n != 17).then_some(text.as_str()));
        assert_eq!(first_lines, wanted.collect::<Vec<_>>());
        assert!(server.capture_panes(&[]).unwrap().is_empty());
    });
}

#[test]
fn moved_pane_keeps_its_tag() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let pane = made.pane.to_string();
        server.tag_pane(made.pane, &tag("ann"), &label("ann")).unwrap();
        server.tag_pane(made.pane, &tag("ann"), &label("again")).unwrap();
        bench.run(["join-pane", "-d", "-s", &pane, "-t", "=main:"]);
        server.set_label(made.pane, &tag("ann"), &label("moved")).unwrap();
        assert_eq!(server.kill(made.pane, &tag("ann")).unwrap(), KillOutcome::Killed);
    });
}

/// The marks stay with it, the process does not.
#[test]
fn respawned_pane_loses_its_tag() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let pane = made.pane.to_string();
        server.tag_pane(made.pane, &tag("ann"), &label("ann")).unwrap();
        bench.run(["respawn-pane", "-k", "-t", &pane, "sleep", "1000"]);
        for refused in [
            server.tag_pane(made.pane, &tag("ann"), &label("x")),
            server.set_label(made.pane, &tag("ann"), &label("x")),
            server.capture(made.pane, &tag("ann"), None).map(drop),
            server.hide(made.pane, &tag("ann"), "x"),
        ] {
            assert!(matches!(refused, Err(Error::NotOwned { .. })), "{refused:?}");
        }
        assert_eq!(server.kill(made.pane, &tag("bob")).unwrap(), KillOutcome::NotOwned);
        assert!(bench.run(["show-options", "-p", "-t", &pane]).contains("@teamd ann"));
        assert_eq!(server.kill(made.pane, &tag("ann")).unwrap(), KillOutcome::NotOwned);
        assert_eq!(bench.run(["show-options", "-p", "-t", &pane]), "");
        assert!(panes(bench).contains(&pane));
    });
}

#[test]
fn pane_of_release_0_1_is_owned_until_respawned() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let spawn = "5f0c2e1a-ann";
        for (anew, killed) in [(None, KillOutcome::Killed), (Some("sleep 1000"), KillOutcome::NotOwned)] {
            let script = format!("exec sleep 1000 # {spawn}");
            let pane = bench.run(["new-window", "-d", "-P", "-F", "#{pane_id}", &script]);
            let pane = pane.trim();
            bench.run(["set-option", "-p", "-t", pane, "@teamd", spawn]);
            if let Some(command) = anew {
                bench.run(["respawn-pane", "-k", "-t", pane, command]);
            }
            let labelled = server.set_label(pane.parse().unwrap(), &tag(spawn), &label("ann"));
            assert_eq!(labelled.is_ok(), killed == KillOutcome::Killed, "{labelled:?}");
            assert_eq!(server.kill(pane.parse().unwrap(), &tag(spawn)).unwrap(), killed);
        }
    });
}

#[test]
fn pane_ids_of_another_server_are_rejected() {
    on_default_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let pane = "%0".parse().unwrap();
        server.tag_pane(pane, &tag("ann"), &label("")).unwrap();
        let old = server.epoch().pid;
        bench.run(["kill-server"]);
        crate::test_server::wait_until("another server", || {
            let up =
                bench.command(["new-session", "-d", "-s", "main", "--", "sleep", "1000"]).output().unwrap();
            up.status.success().then_some(())
        });
        bench.run(["set-option", "-p", "-t", "%0", "@teamd", "ann"]);
        let error = server.kill(pane, &tag("ann")).unwrap_err();
        assert!(
            matches!(&error, Error::OtherServer { expected, found } if expected.pid == old && found.pid != old)
        );
        assert!(server.split("@0".parse().unwrap(), &idle_command()).is_err());
        assert!(!server.is_alive());
        assert_eq!(panes(bench), ["%0"]);
        assert!(bench.hidden_sessions().is_empty());
    });
}

#[test]
fn list_parses_any_tag_value() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let value = "a b\n%99 @9 $9 1 0 0 1 1 ann";
        bench.run(["set-option", "-p", "-t", &made.pane.to_string(), "@teamd", value]);
        let rows = server.list_panes().unwrap();
        let row = rows.iter().find(|row| row.pane == made.pane).unwrap();
        assert_eq!(row.tag.as_deref(), Some("a_b__99__9__9_1_0_0_1_1_ann"));
        assert!(row.tag.as_deref().unwrap().parse::<tmux::PaneTag>().is_err());
    });
}
