//! What belongs to the user stays as it was.

use tmux::Server;

use crate::bench::{Bench, everywhere, idle, label, owner};

/// All that a person could miss.
fn belongings(bench: &Bench) -> Vec<(String, String)> {
    let window =
        "#{window_id} #{window_active} #{window_zoomed_flag} #{window_layout} #{window_name} #{window_flags}";
    let client =
        "#{?client_control_mode,team,#{client_session} #{client_width}x#{client_height} #{client_flags}}";
    let looks: [&[&str]; 13] = [
        &["list-windows", "-t", "=main:", "-F", window],
        &["list-panes", "-t", "=main:", "-F", "#{pane_id} #{pane_active} #{pane_width} #{pane_height}"],
        &["list-clients", "-F", client],
        &["show-options", "-s"],
        &["show-options", "-g"],
        &["show-options", "-gw"],
        &["show-options", "-t", "=main:"],
        &["show-options", "-w", "-t", "=main:"],
        &["show-options", "-p", "-t", "=main:"],
        &["show-environment", "-g"],
        &["show-environment", "-t", "=main:"],
        &["show-hooks", "-g"],
        &["list-keys"],
    ];
    // The windows of ours are the only thing that is new.
    let theirs =
        |text: String| text.lines().filter(|line| !line.contains("team")).collect::<Vec<_>>().join("\n");
    looks.iter().map(|look| (look.join(" "), theirs(bench.run(*look)))).collect()
}

fn storm(server: &mut Server, window: tmux::WindowId) {
    let made: Vec<_> = (0..20).map(|_| server.split(window, &idle()).unwrap().pane).collect();
    server.lay_out(window, "tiled").unwrap();
    for pane in &made {
        server.claim(*pane, &owner("ann"), &label("ann")).unwrap();
    }
    for pane in made {
        assert_eq!(server.kill(pane, &owner("ann")).unwrap(), tmux::Killed::Killed);
    }
}

#[test]
fn twenty_panes_come_and_go_behind_the_users_back() {
    everywhere(|bench| {
        let _person = bench.attach();
        bench.run(["resize-pane", "-Z", "-t", "=main:"]);
        // Else tmux itself renames it, a moment after something began in it.
        bench.run(["rename-window", "-t", "=main:", "mine"]);
        assert!(bench.run(["show-environment", "-t", "=main:"]).contains("SSH_AUTH_SOCK=/a/socket"));
        let before = belongings(bench);
        let (mut server, _notices) = bench.connect();
        let session = server.session_of("%0".parse().unwrap()).unwrap();
        let made = server.new_window(session, "team", &idle()).unwrap();
        storm(&mut server, made.window);
        for (before, after) in before.iter().zip(belongings(bench)) {
            assert_eq!(before.1, after.1, "{}", before.0);
        }
        bench.run(["set-hook", "-g", "session-closed[71]", "wait-for -S closed"]);
        drop(server);
        bench.wait_for("closed");
        for _ in 0..50 {
            bench.run(["list-panes", "-a"]);
        }
    });
}

#[test]
fn a_zoomed_team_pane_stays_zoomed() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let session = server.session_of("%0".parse().unwrap()).unwrap();
        let made = server.new_window(session, "team", &idle()).unwrap();
        let other = server.split(made.window, &idle()).unwrap();
        let zoom = || {
            bench.run([
                "display-message",
                "-p",
                "-t",
                &made.window.to_string(),
                "#{window_zoomed_flag} #{pane_id}",
            ])
        };
        assert_eq!(zoom(), format!("0 {}", made.pane));
        bench.run(["resize-pane", "-Z", "-t", &made.pane.to_string()]);
        server.claim(other.pane, &owner("ann"), &label("")).unwrap();
        let third = server.split(made.window, &idle()).unwrap();
        server.lay_out(made.window, "tiled").unwrap();
        assert!(server.list().unwrap().iter().any(|row| row.pane == third.pane && row.zoomed));
        server.kill(other.pane, &owner("ann")).unwrap();
        assert_eq!(zoom(), format!("1 {}", made.pane));
        server.claim(made.pane, &owner("bob"), &label("")).unwrap();
        server.kill(made.pane, &owner("bob")).unwrap();
        assert_eq!(zoom(), format!("0 {}", third.pane));
    });
}

#[test]
fn who_is_attached_reads_an_announcement_and_tmux_runs_nothing_of_it() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        assert!(!server.announce("nobody reads this", &[]).unwrap());
        let _person = bench.attach();
        assert!(!server.announce("ann@survey asks for permission", &[]).unwrap());
        let clients = bench.run(["list-clients", "-F", "#{client_control_mode} #{client_name}"]);
        let client = clients.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().to_owned();
        let told = bench.run(["show-messages", "-t", &client]);
        assert!(told.contains("ann@survey asks for permission"), "{told}");
        assert!(server.announce("#(touch x)", &[]).is_err());
    });
}

#[test]
fn whoever_looks_at_the_pane_that_it_is_about_is_not_told() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let _person = bench.attach();
        let shown = bench.run(["list-clients", "-F", "#{client_control_mode} #{pane_id}"]);
        let shown = shown.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().parse().unwrap();
        assert!(server.announce("seen by who looks there", &[shown]).unwrap());
        let other = "%99".parse().unwrap();
        assert!(!server.announce("ann has ended", &[shown, other]).unwrap(), "the other is not seen");
        assert!(!server.announce("bob has ended", &[other]).unwrap());
        let clients = bench.run(["list-clients", "-F", "#{client_control_mode} #{client_name}"]);
        let client = clients.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().to_owned();
        let told = bench.run(["show-messages", "-t", &client]);
        assert!(told.contains("bob has ended") && !told.contains("seen by who"), "{told}");
    });
}
