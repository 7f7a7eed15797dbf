//! Nothing happens to a pane that is not, or no longer, what it was.

use tmux::{Error, Killed, Server};

use crate::bench::{Bench, everywhere, idle, label, owner, plainly, until, words};

fn window(server: &mut Server) -> tmux::Created {
    server.new_session("team", "one", &idle()).unwrap()
}

fn panes(bench: &Bench) -> Vec<String> {
    bench.run(["list-panes", "-a", "-F", "#{pane_id}"]).lines().map(ToOwned::to_owned).collect()
}

#[test]
fn another_owners_pane_is_left_alone() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let stranger = owner("bob");
        assert_eq!(server.kill(made.pane, &stranger).unwrap(), Killed::NotOurs);
        server.claim(made.pane, &owner("ann"), &label("ann")).unwrap();
        assert_eq!(server.kill(made.pane, &stranger).unwrap(), Killed::NotOurs);
        let file = bench.path("record");
        for refused in [
            server.claim(made.pane, &stranger, &label("x")),
            server.label(made.pane, &stranger, &label("x")),
            server.record(made.pane, &stranger, &["/bin/cat".into(), file]),
            server.capture(made.pane, &stranger, None).map(drop),
        ] {
            assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
        }
        let name = bench.run(["show-options", "-pv", "-t", &made.pane.to_string(), "@teamd_name"]);
        assert_eq!(name, "ann");
        assert!(panes(bench).contains(&made.pane.to_string()));
    });
}

#[test]
fn of_many_screens_those_that_are_not_ours_are_left_out() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let mut panes = Vec::new();
        let session = server.new_session("team", "0", &idle()).unwrap().session;
        for n in 0..20 {
            let command = format!("echo screen {n}; exec sleep 1000");
            let made = server.new_window(session, "team", &words(["sh", "-c", &command])).unwrap();
            server.claim(made.pane, &owner("ann"), &label("")).unwrap();
            panes.push((made.pane, owner("ann")));
        }
        panes[3].1 = owner("bob");
        panes[17].0 = "%4711".parse().unwrap();
        let all = until("all are drawn", || {
            let screens = server.screens(&panes).unwrap();
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
        assert!(server.screens(&[]).unwrap().is_empty());
    });
}

#[test]
fn a_pane_that_was_moved_is_still_ours() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let pane = made.pane.to_string();
        server.claim(made.pane, &owner("ann"), &label("ann")).unwrap();
        server.claim(made.pane, &owner("ann"), &label("again")).unwrap();
        bench.run(["join-pane", "-d", "-s", &pane, "-t", "=main:"]);
        server.label(made.pane, &owner("ann"), &label("moved")).unwrap();
        assert_eq!(server.kill(made.pane, &owner("ann")).unwrap(), Killed::Killed);
    });
}

/// The marks stay with it, the process does not.
#[test]
fn a_pane_that_a_person_has_started_anew_is_theirs_and_bears_no_mark_of_ours() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let pane = made.pane.to_string();
        server.claim(made.pane, &owner("ann"), &label("ann")).unwrap();
        bench.run(["respawn-pane", "-k", "-t", &pane, "sleep", "1000"]);
        for refused in [
            server.claim(made.pane, &owner("ann"), &label("x")),
            server.label(made.pane, &owner("ann"), &label("x")),
            server.capture(made.pane, &owner("ann"), None).map(drop),
            server.hide(made.pane, &owner("ann"), "x"),
        ] {
            assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
        }
        assert_eq!(server.kill(made.pane, &owner("bob")).unwrap(), Killed::NotOurs);
        assert!(bench.run(["show-options", "-p", "-t", &pane]).contains("@teamd ann"));
        assert_eq!(server.kill(made.pane, &owner("ann")).unwrap(), Killed::NotOurs);
        assert_eq!(bench.run(["show-options", "-p", "-t", &pane]), "");
        assert!(panes(bench).contains(&pane));
    });
}

#[test]
fn a_pane_of_an_earlier_release_is_ours_until_a_person_starts_it_anew() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let spawn = "5f0c2e1a-ann";
        for (anew, killed) in [(None, Killed::Killed), (Some("sleep 1000"), Killed::NotOurs)] {
            let script = format!("exec sleep 1000 # {spawn}");
            let pane = bench.run(["new-window", "-d", "-P", "-F", "#{pane_id}", &script]);
            let pane = pane.trim();
            bench.run(["set-option", "-p", "-t", pane, "@teamd", spawn]);
            if let Some(command) = anew {
                bench.run(["respawn-pane", "-k", "-t", pane, command]);
            }
            let labelled = server.label(pane.parse().unwrap(), &owner(spawn), &label("ann"));
            assert_eq!(labelled.is_ok(), killed == Killed::Killed, "{labelled:?}");
            assert_eq!(server.kill(pane.parse().unwrap(), &owner(spawn)).unwrap(), killed);
        }
    });
}

#[test]
fn the_same_ids_on_the_next_server_mean_nothing() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        let pane = "%0".parse().unwrap();
        server.claim(pane, &owner("ann"), &label("")).unwrap();
        let old = server.epoch().pid;
        bench.run(["kill-server"]);
        crate::bench::until("another server", || {
            let up =
                bench.command(["new-session", "-d", "-s", "main", "--", "sleep", "1000"]).output().unwrap();
            up.status.success().then_some(())
        });
        bench.run(["set-option", "-p", "-t", "%0", "@teamd", "ann"]);
        let error = server.kill(pane, &owner("ann")).unwrap_err();
        assert!(
            matches!(&error, Error::Restarted { expected, found } if expected.pid == old && found.pid != old)
        );
        assert!(server.split("@0".parse().unwrap(), &idle()).is_err());
        assert!(!server.alive());
        assert_eq!(panes(bench), ["%0"]);
        assert!(bench.hidden().is_empty());
    });
}

#[test]
fn a_list_keeps_its_rows_whatever_the_option_holds() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = window(&mut server);
        let value = "a b\n%99 @9 $9 1 0 0 1 1 ann";
        bench.run(["set-option", "-p", "-t", &made.pane.to_string(), "@teamd", value]);
        let rows = server.list().unwrap();
        let row = rows.iter().find(|row| row.pane == made.pane).unwrap();
        assert_eq!(row.owner.as_deref(), Some("a_b__99__9__9_1_0_0_1_1_ann"));
        assert!(row.owner.as_deref().unwrap().parse::<tmux::Owner>().is_err());
    });
}
