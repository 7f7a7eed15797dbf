//! A pane from its making to its end.

use std::path::PathBuf;

use tmux::{Address, Error, Killed, PaneId, PaneRow, Server};

use crate::bench::{Bench, claim, everywhere, idle, label, owner, plainly, until, words};

fn row(server: &mut Server, pane: tmux::PaneId) -> Option<PaneRow> {
    server.list().unwrap().into_iter().find(|row| row.pane == pane)
}

fn main_session(bench: &Bench, server: &mut Server) -> tmux::SessionId {
    let pane = bench.run(["list-panes", "-t", "=main:", "-F", "#{pane_id}"]);
    server.session_of(pane.lines().next().unwrap().parse().unwrap()).unwrap()
}

#[test]
fn a_pane_is_made_claimed_seen_and_killed() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        assert!(server.alive());
        let session = main_session(bench, &mut server);
        let first = server.new_window(session, "team", &idle()).unwrap();
        let second = server.split(first.window, &idle()).unwrap();
        assert_eq!((second.window, second.session), (first.window, session));
        server.claim(second.pane, &owner("ann-1"), &label("x")).unwrap();
        server.lay_out(first.window, "tiled").unwrap();
        let seen = row(&mut server, second.pane).unwrap();
        assert_eq!((seen.owner.as_deref(), seen.pid, seen.dead), (Some("ann-1"), second.pid, false));
        assert_eq!((seen.window, seen.session), (second.window, second.session));
        let size = bench.run(["display-message", "-p", "-t", "=main:", "#{window_width} #{window_height}"]);
        assert_eq!(format!("{} {}", seen.width, seen.height), size);
        assert_eq!(row(&mut server, first.pane).unwrap().owner, None);
        assert_eq!(server.kill(second.pane, &owner("ann-1")).unwrap(), Killed::Killed);
        assert_eq!(server.kill(second.pane, &owner("ann-1")).unwrap(), Killed::Absent);
    });
}

#[test]
fn a_new_pane_is_claimed_and_recorded_in_one_go() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let fifo = bench.fifo("go");
        let said = "read go <\"$1\"; echo heard; exec sleep 1000";
        let first = server.new_session("team", "one", &idle()).unwrap();
        let made =
            server.split(first.window, &words(["sh", "-c", said, "sh", fifo.to_str().unwrap()])).unwrap();
        let into = |name: &str| -> Vec<PathBuf> {
            vec!["/bin/sh".into(), "-c".into(), "exec cat >\"$1\"".into(), "sh".into(), bench.path(name)]
        };
        let next = Some((first.window, &idle()[..]));
        let claimed =
            server.claim_and_record(made, &owner("ann"), &label("ann"), &into("record"), next).unwrap();
        claimed.claimed.and(claimed.recorded).unwrap();
        let next = claimed.next.unwrap().unwrap();
        let beside: Vec<_> =
            server.list_window(first.window).unwrap().into_iter().map(|row| (row.pane, row.owner)).collect();
        assert_eq!(beside, [(first.pane, None), (next.pane, None), (made.pane, Some("ann".to_owned()))]);
        let refused = server.claim_and_record(made, &owner("bob"), &label("bob"), &into("another"), None);
        let refused = refused.unwrap().claimed;
        assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
        bench.file("go", "go\n");
        until("the record", || {
            std::fs::read_to_string(bench.path("record"))
                .is_ok_and(|text| text.contains("heard"))
                .then_some(())
        });
        assert!(!bench.path("another").exists());
        assert_eq!(bench.run(["show-options", "-pv", "-t", &made.pane.to_string(), "@teamd_name"]), "ann");
    });
}

#[test]
fn of_several_windows_a_pane_each_goes_in_one_round_trip_if_it_is_where_it_was_said_to_be() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let first = server.new_session("team", "one", &idle()).unwrap();
        let names = ["ann", "bob", "carl", "dora"];
        let made = names.map(|name| {
            let made = server.new_window(first.session, name, &idle()).unwrap();
            server.claim(made.pane, &owner(name), &label(name)).unwrap();
            made
        });
        let [_, bob, carl, dora] = made;
        bench.run(["join-pane", "-d", "-s", &dora.pane.to_string(), "-t", &first.pane.to_string()]);
        bench.run(["split-window", "-t", &carl.pane.to_string(), "sleep 1000"]);
        bench.run(["resize-pane", "-Z", "-t", &carl.window.to_string()]);
        let all = [0, 1, 2, 3].map(|at| {
            let name = if made[at].pane == bob.pane { "another" } else { names[at] };
            (made[at].pane, owner(name), made[at].window)
        });
        let gone = server.kill_each(&all).unwrap();
        assert_eq!(
            gone,
            [true, false, false, false],
            "bob's is another's, carl's behind a zoom, dora's elsewhere"
        );
        assert_eq!(server.kill_each(&all).unwrap(), gone, "who is gone stays so");
        for name in ["bob", "carl", "dora"] {
            let pane = made[names.iter().position(|one| *one == name).unwrap()].pane;
            assert_eq!(server.kill(pane, &owner(name)).unwrap(), Killed::Killed);
        }
    });
}

/// Else the server dies, up to tmux 3.6, with all of its sessions.
#[test]
fn a_session_does_not_end_in_a_round_trip_of_several() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let other = server.new_session("other", "one", &idle()).unwrap();
        let one = server.new_session("team", "one", &idle()).unwrap();
        let two = server.new_window(one.session, "two", &idle()).unwrap();
        let all = [(one, "ann"), (two, "bob")].map(|(made, name)| {
            server.claim(made.pane, &owner(name), &label(name)).unwrap();
            (made.pane, owner(name), made.window)
        });
        assert_eq!(server.kill_each(&all).unwrap(), [true, false]);
        assert_eq!(server.kill(two.pane, &owner("bob")).unwrap(), Killed::Killed);
        assert!(server.list().unwrap().iter().any(|row| row.pane == other.pane), "the server lives");
    });
}

#[test]
fn a_new_session_stays_with_nobody_in_it() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = server.new_session("team", "one", &idle()).unwrap();
        // A client that comes and goes makes tmux look for sessions to destroy.
        bench.run(["list-sessions"]);
        assert!(row(&mut server, made.pane).is_some());
        if server.version() > "3.2".parse().unwrap() {
            assert_eq!(row(&mut server, made.pane).unwrap().width, 200);
        }
        assert!(matches!(server.new_session("team", "one", &idle()), Err(Error::Failed { .. })));
    });
}

#[test]
fn a_pane_whose_process_has_ended_is_claimed_and_cannot_be_recorded() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        bench.run(["set-option", "-g", "remain-on-exit", "on"]);
        let session = main_session(bench, &mut server);
        let first = server.new_window(session, "team", &idle()).unwrap();
        let made = server.split(first.window, &words(["sh", "-c", "exit 0"])).unwrap();
        let is_dead = ["display-message", "-p", "-t", &made.pane.to_string(), "#{pane_dead}"];
        until("its end", || (bench.run(is_dead) == "1").then_some(()));
        let record = ["/bin/cat".into()];
        let claimed = server.claim_and_record(made, &owner("ann"), &label("ann"), &record, None).unwrap();
        claimed.claimed.unwrap();
        assert!(matches!(claimed.recorded, Err(Error::Failed { .. })), "{:?}", claimed.recorded);
        assert_eq!(server.kill(made.pane, &owner("ann")).unwrap(), Killed::Killed);
    });
}

#[test]
fn a_new_window_goes_behind_the_last_and_stays_in_the_background() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let session = main_session(bench, &mut server);
        bench.run(["new-window", "-d", "-t", "=main:7", "sleep", "1000"]);
        let made = server.new_window(session, "team", &idle()).unwrap();
        claim(&mut server, made, &owner("ann"), &label("ann"));
        let format = "#{window_index} #{window_active} #{window_name} #{automatic-rename} #{synchronize-panes} \
                      #{pane-border-status}";
        let seen = bench.run(["display-message", "-p", "-t", &made.pane.to_string(), format]);
        assert_eq!(seen, "8 0 team 0 0 top");
        let window = made.window.to_string();
        assert_eq!(bench.run(["show-options", "-wv", "-t", &window, "remain-on-exit"]), "off");
        let row = server.list_window(made.window).unwrap().remove(0);
        assert_eq!((row.width, row.height), made.size);
    });
}

#[test]
fn the_border_shows_the_label() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let session = main_session(bench, &mut server);
        let made = server.new_window(session, "team", &idle()).unwrap();
        let border = |pane: PaneId| {
            bench.run(["display-message", "-p", "-t", &pane.to_string(), "#{T:pane-border-format}"])
        };
        claim(&mut server, made, &owner("ann"), &label("日本"));
        assert_eq!(border(made.pane).trim(), "#[fg=colour208]#[bold]日本#[default] 日本 | 日本");
        let unclaimed = server.split(made.window, &idle()).unwrap();
        assert!(border(unclaimed.pane).trim().parse::<u32>().is_ok());
    });
}

#[test]
fn a_screen_is_read_with_all_its_letters() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let session = main_session(bench, &mut server);
        let text = "printf '日本\\303\\n%%end 9 9 9\\n%%exit\\nlast\\n'; exec sleep 1000";
        let made = server.new_window(session, "team", &words(["sh", "-c", text])).unwrap();
        server.claim(made.pane, &owner("ann"), &label("")).unwrap();
        until("the text", || {
            let screen = server.capture(made.pane, &owner("ann"), None).unwrap();
            screen.contains("last").then_some(())
        });
        let screen = server.capture(made.pane, &owner("ann"), None).unwrap();
        assert!(screen.starts_with("日本"), "{screen}");
        assert!(screen.contains("\n%end 9 9 9\n%exit\nlast\n"), "{screen}");
        assert_eq!(server.capture(made.pane, &owner("ann"), Some(2)).unwrap(), "%exit\nlast");
    });
}

#[test]
fn a_full_window_is_told_from_other_failures() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let session = main_session(bench, &mut server);
        let made = server.new_window(session, "team", &idle()).unwrap();
        let full = (0..400).find_map(|_| server.split(made.window, &idle()).err()).unwrap();
        assert!(matches!(full, Error::NoSpace { window } if window == made.window), "{full}");
        let gone = server.split("@9999".parse().unwrap(), &idle()).unwrap_err();
        assert!(matches!(gone, Error::Failed { .. }), "{gone}");
    });
}

#[test]
fn what_is_not_there_is_never_answered_for_by_something_else() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let (pane, session) = ("%9999".parse().unwrap(), "$9999".parse().unwrap());
        assert!(matches!(server.session_of(pane), Err(Error::NoPane { .. })));
        assert!(matches!(server.new_window(session, "team", &idle()), Err(Error::Failed { .. })));
        assert!(matches!(server.capture(pane, &owner("a"), None), Err(Error::NotOurs { .. })));
        assert!(server.claim(pane, &owner("a"), &label("")).is_err());
        assert_eq!(server.kill(pane, &owner("a")).unwrap(), Killed::Absent);
    });
}

#[test]
fn a_server_is_found_by_name_and_started_where_there_is_none() {
    plainly(|bench| {
        let address = Address::Name(format!("teamd-test-{}", std::process::id()));
        let mut server = Server::connect_with(&bench.program(), &address, Box::new(drop)).unwrap();
        assert!(server.epoch().socket_path.starts_with(bench.path("")), "{}", server.epoch());
        assert!(server.alive());
        // Its only session is the hidden one, so it ends with the connection.
        server.new_session("team", "one", &idle()).unwrap();
        let pid = server.epoch().pid;
        drop(server);
        let again = Server::connect_with(&bench.program(), &address, Box::new(drop)).unwrap();
        assert_eq!(again.epoch().pid, pid);
        crate::bench::signal("TERM", pid);
    });
}
