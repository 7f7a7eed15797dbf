//! Servers that die, stop, restart or are too old; and our own sudden end.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tmux::{Error, ServerAddress, ServerNotice, TmuxProgram, TmuxServer};

use crate::test_server::{TestServer, idle_command, label, on_all_servers, on_default_servers, signal, tag};

fn lost(notices: &Receiver<ServerNotice>) {
    while notices.recv_timeout(Duration::from_secs(9)).expect("a notice of the loss")
        != ServerNotice::Disconnected
    {}
}

#[test]
fn killed_server_is_noticed_and_not_restarted() {
    on_all_servers(|bench| {
        let (mut server, notices) = bench.connect();
        signal("KILL", server.epoch().pid);
        lost(&notices);
        let start = Instant::now();
        assert!(!server.is_alive());
        assert!(matches!(server.list_panes(), Err(Error::Connect { .. })));
        assert!(matches!(server.new_session("team", "one", &idle_command()), Err(Error::Connect { .. })));
        assert!(start.elapsed() < Duration::from_secs(3));
        assert!(!bench.command(["-N", "list-sessions"]).output().unwrap().status.success());
    });
}

#[test]
fn stopped_server_times_out() {
    on_default_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let pid = server.epoch().pid;
        signal("STOP", pid);
        let results: Vec<_> = (0..2)
            .map(|_| {
                let start = Instant::now();
                (server.list_panes(), start.elapsed())
            })
            .collect();
        signal("CONT", pid);
        for (result, elapsed) in results {
            assert!(matches!(result, Err(Error::Timeout { .. })), "{result:?}");
            assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
        }
        assert!(server.is_alive());
        bench.run(["kill-server"]);
    });
}

#[test]
fn lost_client_is_replaced() {
    on_all_servers(|bench| {
        let (mut server, notices) = bench.connect();
        for ending in ["detach-client", "kill-session"] {
            let name = bench.hidden_sessions().remove(0);
            let target = if ending == "kill-session" { "-t" } else { "-s" };
            bench.run([ending, target, &format!("={name}")]);
            lost(&notices);
            assert!(server.is_alive());
            server.list_panes().unwrap();
            let sessions = bench.hidden_sessions();
            assert!(sessions.len() == 1 && sessions[0] != name, "{sessions:?}");
        }
    });
}

#[test]
fn connect_succeeds_while_a_server_exits() {
    on_default_servers(|bench| {
        for _ in 0..10 {
            bench.run(["kill-server"]);
            let (mut server, _notices) = bench.connect();
            server.new_session("main", "one", &idle_command()).unwrap();
        }
    });
}

#[test]
fn drop_leaves_no_session() {
    on_all_servers(|bench| {
        let (server, notices) = bench.connect();
        watch_sessions(bench);
        drop(server);
        bench.wait_for("closed");
        assert!(bench.hidden_sessions().is_empty());
        assert!(notices.try_iter().all(|notice| notice == ServerNotice::Changed));
    });
}

fn watch_sessions(bench: &TestServer) {
    bench.run(["set-hook", "-g", "session-closed", "wait-for -S closed"]);
}

/// Started by itself as another process, this test connects and waits to be killed.
#[test]
fn kill_leaves_no_session() {
    if let Some(dir) = env::var_os("TMUX_TEST_DIR") {
        return wait_to_be_killed(dir.as_ref());
    }
    on_all_servers(|bench| {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["broken::a_sudden_end_of_ours_leaves_no_session_behind", "--exact", "--nocapture"]);
        child.env("TMUX_TEST_DIR", bench.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("connected")));
        watch_sessions(bench);
        assert_eq!(bench.hidden_sessions().len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        bench.wait_for("closed");
        assert!(bench.hidden_sessions().is_empty());
        assert!(bench.run(["list-sessions", "-F", "#{session_name}"]).contains("main"));
        // A client that stayed would hold its server back.
        let pid = bench.run(["display-message", "-p", "#{pid}"]);
        bench.run(["kill-server"]);
        crate::test_server::wait_until("the server's end", || {
            let alive = Command::new("kill").args(["-s", "0", &pid]).stderr(Stdio::null()).status().unwrap();
            (!alive.success()).then_some(())
        });
    });
}

#[test]
fn connect_waits_for_the_stale_client() {
    on_all_servers(|bench| {
        let name = format!("_teamd-{}-0", u32::MAX);
        let there = ["new-session", "-d", "-s", &name, "--", "sleep", "1000", ";"].into_iter();
        bench.run(there.chain(["set-option", "-t", &name, "destroy-unattached", "off"]));
        // At the second look it goes, as if its watcher had come.
        bench.write_tmux_wrapper(&format!(
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
fn only_the_stale_session_is_removed() {
    on_all_servers(|bench| {
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
    let program = TmuxProgram(dir.join("tmux"));
    let address = ServerAddress::Path(dir.join("socket"));
    let mut server = TmuxServer::connect_with(&program, &address, Box::new(drop)).unwrap();
    println!("\nconnected");
    // Answers are always under way.
    while server.list_panes().is_ok() {}
}

#[test]
fn old_or_missing_tmux_is_reported() {
    on_default_servers(|bench| {
        let old = TmuxProgram(bench.write_script("old", "echo tmux 3.1c"));
        let error = TmuxServer::connect_with(&old, &bench.address(), Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::TooOld { .. }), "{error}");
        let none = TmuxProgram(bench.path("none"));
        let error = TmuxServer::connect_with(&none, &bench.address(), Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::ProgramNotStarted { .. }), "{error}");
        let nowhere = ServerAddress::Path(bench.path("none/socket"));
        let error = TmuxServer::connect_with(&bench.program(), &nowhere, Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::Connect { .. }), "{error}");
        assert!(error.to_string().contains("none/socket"), "{error}");
    });
}

#[test]
fn dead_pane_is_captured_and_killed() {
    on_default_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = server.new_session("team", "one", &idle_command()).unwrap();
        server.tag_pane(made.pane, &tag("ann"), &label("")).unwrap();
        bench.run(["set-option", "-w", "-t", &made.window.to_string(), "remain-on-exit", "on"]);
        signal("KILL", made.pid);
        crate::test_server::wait_until("the death", || {
            server.list_panes().unwrap().into_iter().find(|row| row.pane == made.pane && row.is_dead)
        });
        server.capture(made.pane, &tag("ann"), Some(5)).unwrap();
        assert_eq!(server.kill(made.pane, &tag("ann")).unwrap(), tmux::KillOutcome::Killed);
        assert!(server.is_alive());
    });
}
