//! Noise on the connection does no harm.

use crate::test_server::{idle_command, label, on_all_servers, on_default_servers, tag};

#[test]
fn hooks_and_aliases_do_not_confuse_replies() {
    on_all_servers(|bench| {
        let (mut server, notices) = bench.connect();
        let spoof = "display-message -p '%exit'";
        for hook in ["after-set-option", "after-kill-pane", "after-new-session", "window-linked"] {
            bench.run(["set-hook", "-ga", hook, spoof]);
        }
        bench.run([
            "set-option",
            "-s",
            "command-alias[90]",
            "select-layout=select-layout ; display-message -p",
        ]);
        let made = server.new_session("team", "one", &idle_command()).unwrap();
        for _ in 0..50 {
            let pane = server.split(made.window, &idle_command()).unwrap().pane;
            server.tag_pane(pane, &tag("ann"), &label("%end 1 1 1")).unwrap();
            // With the alias it has a message too many; all that counts is that answers stay in step.
            drop(server.apply_layout(made.window, "tiled"));
            assert!(server.list_panes().unwrap().iter().any(|row| row.pane == pane));
            assert_eq!(server.kill(pane, &tag("ann")).unwrap(), tmux::KillOutcome::Killed);
        }
        assert!(server.is_alive());
        assert!(notices.try_iter().all(|notice| notice == tmux::ServerNotice::Changed));
    });
}

#[test]
fn large_arguments_and_screens_pass() {
    on_default_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let text = "x".repeat(60_000);
        let script = "printf '%s\\n' \"$0\"; echo end; exec sleep 1000";
        let argv = crate::test_server::strings(["sh", "-c", script, &text]);
        let made = server.new_session("team", "one", &argv).unwrap();
        server.tag_pane(made.pane, &tag("ann"), &label("")).unwrap();
        let screen = crate::test_server::wait_until("the end", || {
            let screen = server.capture(made.pane, &tag("ann"), Some(2000)).unwrap();
            screen.ends_with("end").then_some(screen)
        });
        assert_eq!(screen.matches('x').count(), 60_000);
    });
}

#[test]
fn changes_by_others_are_noticed() {
    on_all_servers(|bench| {
        let (_server, notices) = bench.connect();
        while notices.try_recv().is_ok() {}
        bench.run(["new-window", "-d", "-t", "=main:", "sleep", "1000"]);
        let heard = notices.recv_timeout(std::time::Duration::from_secs(9)).unwrap();
        assert_eq!(heard, tmux::ServerNotice::Changed);
    });
}
