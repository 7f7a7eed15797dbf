//! Servers that die, stop, restart or are too old; and our own sudden end.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tmux::{Address, Error, Notice, Program, Server};

use crate::bench::{Bench, everywhere, idle, label, owner, plainly, signal};

fn lost(notices: &Receiver<Notice>) {
    while notices.recv_timeout(Duration::from_secs(9)).expect("a notice of the loss") != Notice::Lost {}
}

#[test]
fn a_killed_server_is_noticed_and_never_started_again() {
    everywhere(|bench| {
        let (mut server, notices) = bench.connect();
        signal("KILL", server.epoch().pid);
        lost(&notices);
        let start = Instant::now();
        assert!(!server.alive());
        assert!(matches!(server.list(), Err(Error::Connect { .. })));
        assert!(matches!(server.new_session("team", "one", &idle()), Err(Error::Connect { .. })));
        assert!(start.elapsed() < Duration::from_secs(3));
        assert!(!bench.command(["-N", "list-sessions"]).output().unwrap().status.success());
    });
}

#[test]
fn a_stopped_server_is_an_error_in_time() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        let pid = server.epoch().pid;
        signal("STOP", pid);
        let results: Vec<_> = (0..2)
            .map(|_| {
                let start = Instant::now();
                (server.list(), start.elapsed())
            })
            .collect();
        signal("CONT", pid);
        for (result, elapsed) in results {
            assert!(matches!(result, Err(Error::Timeout { .. })), "{result:?}");
            assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
        }
        assert!(server.alive());
        bench.run(["kill-server"]);
    });
}

#[test]
fn a_lost_client_is_made_anew() {
    everywhere(|bench| {
        let (mut server, notices) = bench.connect();
        for ending in ["detach-client", "kill-session"] {
            let name = bench.hidden().remove(0);
            let target = if ending == "kill-session" { "-t" } else { "-s" };
            bench.run([ending, target, &format!("={name}")]);
            lost(&notices);
            assert!(server.alive());
            server.list().unwrap();
            let sessions = bench.hidden();
            assert!(sessions.len() == 1 && sessions[0] != name, "{sessions:?}");
        }
    });
}

#[test]
fn a_dying_server_does_not_stop_the_next() {
    plainly(|bench| {
        for _ in 0..10 {
            bench.run(["kill-server"]);
            let (mut server, _notices) = bench.connect();
            server.new_session("main", "one", &idle()).unwrap();
        }
    });
}

#[test]
fn an_end_of_ours_leaves_no_session_behind() {
    everywhere(|bench| {
        let (server, notices) = bench.connect();
        watch_sessions(bench);
        drop(server);
        bench.wait_for("closed");
        assert!(bench.hidden().is_empty());
        assert!(notices.try_iter().all(|notice| notice == Notice::Changed));
    });
}

fn watch_sessions(bench: &Bench) {
    bench.run(["set-hook", "-g", "session-closed", "wait-for -S closed"]);
}

/// Started by itself as another process, this test connects and waits to be killed.
#[test]
fn a_sudden_end_of_ours_leaves_no_session_behind() {
    if let Some(dir) = env::var_os("TMUX_TEST_DIR") {
        return wait_to_be_killed(dir.as_ref());
    }
    everywhere(|bench| {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["broken::a_sudden_end_of_ours_leaves_no_session_behind", "--exact", "--nocapture"]);
        child.env("TMUX_TEST_DIR", bench.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("connected")));
        watch_sessions(bench);
        assert_eq!(bench.hidden().len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        bench.wait_for("closed");
        assert!(bench.hidden().is_empty());
        assert!(bench.run(["list-sessions", "-F", "#{session_name}"]).contains("main"));
        // A client that stayed would hold its server back.
        let pid = bench.run(["display-message", "-p", "#{pid}"]);
        bench.run(["kill-server"]);
        crate::bench::until("the server's end", || {
            let alive = Command::new("kill").args(["-s", "0", &pid]).stderr(Stdio::null()).status().unwrap();
            (!alive.success()).then_some(())
        });
    });
}

#[test]
fn who_connects_waits_for_what_a_dead_predecessor_has_there_to_go() {
    everywhere(|bench| {
        let name = format!("_teamd-{}-0", u32::MAX);
        let there = ["new-session", "-d", "-s", &name, "--", "sleep", "1000", ";"].into_iter();
        bench.run(there.chain(["set-option", "-t", &name, "destroy-unattached", "off"]));
        // At the second look it goes, as if its watcher had come.
        bench.wrapper(&format!(
            "asked={}; case \"$*\" in *list-clients*) echo look >>$asked ;; *-C*) echo client >>$asked ;; *) false ;; esac &&
             [ \"$(cat $asked | tr '\\n' ' ')\" = 'look look ' ] && '{}' -S '{}' kill-session -t ={name}",
            bench.path("asked").display(),
            bench.tmux.display(),
            bench.path("socket").display(),
        ));
        let (server, _) = bench.connect();
        assert_eq!(std::fs::read_to_string(bench.path("asked")).unwrap(), "look\nlook\nclient\n");
        drop(server);
    });
}

#[test]
fn what_a_predecessor_left_whose_watcher_was_killed_too_is_ended_and_nothing_else_is() {
    everywhere(|bench| {
        let [ours, brought_back] = ["0", "1"].map(|n| format!("_teamd-{}-{n}", u32::MAX));
        for name in [&ours, &brought_back] {
            let made = ["new-session", "-d", "-s", name, "--", "sleep", "1000", ";"].into_iter();
            bench.run(made.chain(["set-option", "-t", name, "destroy-unattached", "off"]));
        }
        bench.run(["set-option", "-F", "-t", &ours, "@teamd_server", "#{pid} #{start_time}"]);
        let (server, _) = bench.connect();
        let sessions = bench.run(["list-sessions", "-F", "#{session_name}"]);
        assert!(!sessions.contains(&ours) && sessions.contains(&brought_back), "{sessions}");
        drop(server);
    });
}

fn wait_to_be_killed(dir: &std::path::Path) {
    let program = Program(dir.join("tmux"));
    let address = Address::Path(dir.join("socket"));
    let mut server = Server::connect_with(&program, &address, Box::new(drop)).unwrap();
    println!("\nconnected");
    // Answers are always under way.
    while server.list().is_ok() {}
}

#[test]
fn an_old_or_missing_tmux_is_named() {
    plainly(|bench| {
        let old = Program(bench.script("old", "echo tmux 3.1c"));
        let error = Server::connect_with(&old, &bench.address(), Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::TooOld { .. }), "{error}");
        let none = Program(bench.path("none"));
        let error = Server::connect_with(&none, &bench.address(), Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::Run { .. }), "{error}");
        let nowhere = Address::Path(bench.path("none/socket"));
        let error = Server::connect_with(&bench.program(), &nowhere, Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::Connect { .. }), "{error}");
        assert!(error.to_string().contains("none/socket"), "{error}");
    });
}

#[test]
fn a_dead_pane_that_was_kept_is_read_and_killed() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = server.new_session("team", "one", &idle()).unwrap();
        server.claim(made.pane, &owner("ann"), &label("")).unwrap();
        bench.run(["set-option", "-w", "-t", &made.window.to_string(), "remain-on-exit", "on"]);
        signal("KILL", made.pid);
        crate::bench::until("the death", || {
            server.list().unwrap().into_iter().find(|row| row.pane == made.pane && row.dead)
        });
        server.capture(made.pane, &owner("ann"), Some(5)).unwrap();
        assert_eq!(server.kill(made.pane, &owner("ann")).unwrap(), tmux::Killed::Killed);
        assert!(server.alive());
    });
}
