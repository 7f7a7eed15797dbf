//! Tests of failures: servers that are killed, stopped or too old, clients that are lost, and a
//! connected process that is killed.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tmux::{Error, ServerAddress, ServerNotice, TmuxProgram, TmuxServer};

use crate::test_server::{TestServer, idle_command, label, on_all_servers, on_default_servers, signal, tag};

/// Waits for the notice that the connection has ended.
fn wait_for_disconnect(notices: &Receiver<ServerNotice>) {
    while notices.recv_timeout(Duration::from_secs(9)).expect("a disconnect notice within 9 s")
        != ServerNotice::Disconnected
    {}
}

#[test]
fn killed_server_is_noticed_and_not_restarted() {
    on_all_servers(|fixture| {
        let (mut server, notices) = fixture.connect();
        signal("KILL", server.epoch().pid);
        wait_for_disconnect(&notices);
        let start = Instant::now();
        assert!(!server.is_alive());
        assert!(matches!(server.list_panes(), Err(Error::Connect { .. })));
        assert!(matches!(server.new_session("team", "one", &idle_command()), Err(Error::Connect { .. })));
        assert!(start.elapsed() < Duration::from_secs(3));
        assert!(!fixture.command(["-N", "list-sessions"]).output().unwrap().status.success());
    });
}

#[test]
fn stopped_server_times_out() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
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
        fixture.run(["kill-server"]);
    });
}

#[test]
fn lost_client_is_replaced() {
    on_all_servers(|fixture| {
        let (mut server, notices) = fixture.connect();
        for command in ["detach-client", "kill-session"] {
            let name = fixture.hidden_sessions().remove(0);
            let target = if command == "kill-session" { "-t" } else { "-s" };
            fixture.run([command, target, &format!("={name}")]);
            wait_for_disconnect(&notices);
            assert!(server.is_alive());
            server.list_panes().unwrap();
            let sessions = fixture.hidden_sessions();
            assert!(sessions.len() == 1 && sessions[0] != name, "{sessions:?}");
        }
    });
}

/// When a client is lost, its watcher kills the idle pane of its session. On a busy machine the
/// watcher may be late: its session is gone, and the next client has another session, which must
/// stay.
#[test]
fn late_watcher_spares_the_session_of_the_next_client() {
    on_all_servers(|fixture| {
        let gate = fixture.make_fifo("gate");
        // The wrapper lets the watcher wait for the FIFO `gate` before its command, and signals the
        // tmux channel `watched` after it.
        fixture.write_tmux_wrapper(&format!(
            "case \"$*\" in *' if-shell '*kill-pane*)
                read -r line <'{gate}'; '{tmux}' \"$@\"; exec '{tmux}' -S '{socket}' wait-for -S watched ;;
             esac",
            gate = gate.display(),
            tmux = fixture.tmux.display(),
            socket = fixture.path("socket").display(),
        ));
        let (mut server, notices) = fixture.connect();
        fixture.run(["kill-session", "-t", &format!("={}", fixture.hidden_sessions()[0])]);
        wait_for_disconnect(&notices);
        server.list_panes().unwrap();
        let sessions = fixture.hidden_sessions();
        // Watchers that start later do not wait.
        fixture.write_tmux_wrapper("");
        std::fs::OpenOptions::new().write(true).open(&gate).unwrap().write_all(b"\n").unwrap();
        fixture.wait_for("watched");
        assert_eq!((sessions.len(), fixture.hidden_sessions()), (1, sessions));
        assert!(server.is_alive());
    });
}

#[test]
fn connect_succeeds_while_a_server_exits() {
    on_default_servers(|fixture| {
        for _ in 0..10 {
            fixture.run(["kill-server"]);
            let (mut server, _notices) = fixture.connect();
            server.new_session("main", "one", &idle_command()).unwrap();
        }
    });
}

#[test]
fn drop_ends_the_hidden_session() {
    on_all_servers(|fixture| {
        let (server, notices) = fixture.connect();
        signal_closed_sessions(fixture);
        drop(server);
        fixture.wait_for("closed");
        assert!(fixture.hidden_sessions().is_empty());
        assert!(notices.try_iter().all(|notice| notice == ServerNotice::OwnSessionsUsed));
    });
}

/// Makes the server signal the tmux channel `closed` when a session ends.
fn signal_closed_sessions(fixture: &TestServer) {
    fixture.run(["set-hook", "-g", "session-closed", "wait-for -S closed"]);
}

/// The test starts its own executable as another process, with the environment variable
/// `TMUX_TEST_DIR`. That process connects to the server and is then killed.
#[test]
fn kill_ends_the_hidden_session() {
    if let Some(dir) = env::var_os("TMUX_TEST_DIR") {
        return wait_to_be_killed(dir.as_ref());
    }
    on_all_servers(|fixture| {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["server_failures::kill_ends_the_hidden_session", "--exact", "--nocapture"]);
        child.env("TMUX_TEST_DIR", fixture.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("connected")));
        signal_closed_sessions(fixture);
        assert_eq!(fixture.hidden_sessions().len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        fixture.wait_for("closed");
        assert!(fixture.hidden_sessions().is_empty());
        assert!(fixture.run(["list-sessions", "-F", "#{session_name}"]).contains("main"));
        // A control client that still ran would keep the server from exiting.
        let pid = fixture.run(["display-message", "-p", "#{pid}"]);
        fixture.run(["kill-server"]);
        crate::test_server::wait_until("the exit of the server", || {
            let status = Command::new("kill").args(["-s", "0", &pid]).stderr(Stdio::null()).status().unwrap();
            (!status.success()).then_some(())
        });
    });
}

#[test]
fn connect_waits_for_the_stale_client() {
    on_all_servers(|fixture| {
        let name = format!("_teamd-control-{}-0", u32::MAX);
        let create = ["new-session", "-d", "-s", &name, "--", "sleep", "1000", ";"].into_iter();
        fixture.run(create.chain(["set-option", "-t", &name, "destroy-unattached", "off"]));
        fixture.run(["set-option", "-F", "-t", &name, "@teamd_idle_pane", "#{pane_id}"]);
        // The wrapper kills the session just before the second check, as the watcher would.
        fixture.write_tmux_wrapper(&format!(
            "log={}; case \"$*\" in *list-clients*) echo check >>$log ;; *' -C new-session '*) echo client >>$log ;; *) false ;; esac &&
             [ \"$(cat $log | tr '\\n' ' ')\" = 'check check ' ] && '{}' -S '{}' kill-session -t ={name}",
            fixture.path("log").display(),
            fixture.tmux.display(),
            fixture.path("socket").display(),
        ));
        let (server, _) = fixture.connect();
        assert_eq!(std::fs::read_to_string(fixture.path("log")).unwrap(), "check\ncheck\nclient\n");
        drop(server);
    });
}

#[test]
fn only_the_stale_session_is_removed() {
    on_all_servers(|fixture| {
        let [stale, user_session] = ["0", "1"].map(|n| format!("_teamd-control-{}-{n}", u32::MAX));
        for name in [&stale, &user_session] {
            let create = ["new-session", "-d", "-s", name, "--", "sleep", "1000", ";"].into_iter();
            fixture.run(create.chain(["set-option", "-t", name, "destroy-unattached", "off"]));
            fixture.run(["set-option", "-F", "-t", name, "@teamd_idle_pane", "#{pane_id}"]);
        }
        fixture.run(["set-option", "-F", "-t", &stale, "@teamd_server_epoch", "#{pid} #{start_time}"]);
        let (server, _) = fixture.connect();
        let sessions = fixture.run(["list-sessions", "-F", "#{session_name}"]);
        assert!(!sessions.contains(&stale) && sessions.contains(&user_session), "{sessions}");
        drop(server);
    });
}

/// Connects and lists panes until the process is killed.
fn wait_to_be_killed(dir: &std::path::Path) {
    let program = TmuxProgram(dir.join("tmux"));
    let address = ServerAddress::Path(dir.join("socket"));
    let mut server = TmuxServer::connect_with(&program, &address, Box::new(drop)).unwrap();
    println!("\nconnected");
    // The loop has a reply in transit whenever the process is killed.
    while server.list_panes().is_ok() {}
}

#[test]
fn old_or_missing_tmux_is_reported() {
    on_default_servers(|fixture| {
        let old = TmuxProgram(fixture.write_script("old", "echo tmux 3.1c"));
        let error = TmuxServer::connect_with(&old, &fixture.address(), Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::TooOld { .. }), "{error}");
        let missing = TmuxProgram(fixture.path("none"));
        let error = TmuxServer::connect_with(&missing, &fixture.address(), Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::ProgramNotStarted { .. }), "{error}");
        let no_directory = ServerAddress::Path(fixture.path("none/socket"));
        let error =
            TmuxServer::connect_with(&fixture.program(), &no_directory, Box::new(drop)).err().unwrap();
        assert!(matches!(error, Error::Connect { .. }), "{error}");
        assert!(error.to_string().contains("none/socket"), "{error}");
    });
}

#[test]
fn dead_pane_is_captured_and_killed() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = server.new_session("team", "one", &idle_command()).unwrap();
        server.tag_pane(created.pane, &tag("ann"), &label("")).unwrap();
        fixture.run(["set-option", "-w", "-t", &created.window.to_string(), "remain-on-exit", "on"]);
        signal("KILL", created.pid);
        crate::test_server::wait_until("the exit of the process", || {
            server.list_panes().unwrap().into_iter().find(|row| row.pane == created.pane && row.is_dead)
        });
        server.capture(created.pane, &tag("ann"), Some(5)).unwrap();
        assert_eq!(server.kill(created.pane, &tag("ann")).unwrap(), tmux::KillOutcome::Killed);
        assert!(server.is_alive());
    });
}
