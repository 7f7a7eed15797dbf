//! Noise on the connection does no harm.

use crate::bench::{everywhere, idle, label, owner, plainly};

#[test]
fn hooks_and_aliases_do_not_confuse_answers() {
    everywhere(|bench| {
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
        let made = server.new_session("team", "one", &idle()).unwrap();
        for _ in 0..50 {
            let pane = server.split(made.window, &idle()).unwrap().pane;
            server.claim(pane, &owner("ann"), &label("%end 1 1 1")).unwrap();
            // With the alias it has a message too many; all that counts is that answers stay in step.
            drop(server.lay_out(made.window, "tiled"));
            assert!(server.list().unwrap().iter().any(|row| row.pane == pane));
            assert_eq!(server.kill(pane, &owner("ann")).unwrap(), tmux::Killed::Killed);
        }
        assert!(server.alive());
        assert!(notices.try_iter().all(|notice| notice == tmux::Notice::Changed));
    });
}

#[test]
fn a_large_argument_and_a_large_screen_pass() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        let text = "x".repeat(60_000);
        let script = "printf '%s\\n' \"$0\"; echo end; exec sleep 1000";
        let argv = crate::bench::words(["sh", "-c", script, &text]);
        let made = server.new_session("team", "one", &argv).unwrap();
        server.claim(made.pane, &owner("ann"), &label("")).unwrap();
        let screen = crate::bench::until("the end", || {
            let screen = server.capture(made.pane, &owner("ann"), Some(2000)).unwrap();
            screen.ends_with("end").then_some(screen)
        });
        assert_eq!(screen.matches('x').count(), 60_000);
    });
}

#[test]
fn what_others_do_is_noticed() {
    everywhere(|bench| {
        let (_server, notices) = bench.connect();
        while notices.try_recv().is_ok() {}
        bench.run(["new-window", "-d", "-t", "=main:", "sleep", "1000"]);
        let heard = notices.recv_timeout(std::time::Duration::from_secs(9)).unwrap();
        assert_eq!(heard, tmux::Notice::Changed);
    });
}
