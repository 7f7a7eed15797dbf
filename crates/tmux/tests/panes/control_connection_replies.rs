//! Tests that output of hooks, aliases and panes on the control connection does not disturb
//! replies.

use crate::test_server::{idle_command, label, on_all_servers, on_default_servers, tag};

#[test]
fn hooks_and_aliases_do_not_confuse_replies() {
    on_all_servers(|fixture| {
        let (mut server, notices) = fixture.connect();
        let spoof_command = "display-message -p '%exit'";
        for hook in ["after-set-option", "after-kill-pane", "after-new-session", "window-linked"] {
            fixture.run(["set-hook", "-ga", hook, spoof_command]);
        }
        fixture.run([
            "set-option",
            "-s",
            "command-alias[90]",
            "select-layout=select-layout ; display-message -p",
        ]);
        let created = server.new_session("team", "one", &idle_command()).unwrap();
        for _ in 0..50 {
            let pane = server.split(created.window, &idle_command()).unwrap().pane;
            server.tag_pane(pane, &tag("ann"), &label("%end 1 1 1")).unwrap();
            // The alias adds output to the reply, so the result is ignored. The next reply must be
            // correct.
            drop(server.apply_layout(created.window, "tiled"));
            assert!(server.list_panes().unwrap().iter().any(|row| row.pane == pane));
            assert_eq!(server.kill(pane, &tag("ann")).unwrap(), tmux::KillOutcome::Killed);
        }
        assert!(server.is_alive());
        assert!(notices.try_iter().all(|notice| notice == tmux::ServerNotice::OwnSessionsUsed));
    });
}

#[test]
fn large_arguments_and_screens_are_transferred_completely() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let text = "x".repeat(60_000);
        let script = "printf '%s\\n' \"$0\"; echo end; exec sleep 1000";
        let argv = crate::test_server::strings(["sh", "-c", script, &text]);
        let created = server.new_session("team", "one", &argv).unwrap();
        server.tag_pane(created.pane, &tag("ann"), &label("")).unwrap();
        let screen = crate::test_server::wait_until("the last line of the screen", || {
            let screen = server.capture(created.pane, &tag("ann"), Some(2000)).unwrap();
            screen.ends_with("end").then_some(screen)
        });
        assert_eq!(screen.matches('x').count(), 60_000);
    });
}
