//! What belongs to the user stays as it was.

use tmux::TmuxServer;

use crate::test_server::{TestServer, idle_command, label, on_all_servers, tag};

/// All that a person could miss.
fn belongings(bench: &TestServer) -> Vec<(String, String)> {
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

fn storm(server: &mut TmuxServer, window: tmux::WindowId) {
    let made: Vec<_> = (0..20).map(|_| server.split(window, &idle_command()).unwrap().pane).collect();
    server.apply_layout(window, "tiled").unwrap();
    for pane in &made {
        server.tag_pane(*pane, &tag("ann"), &label("ann")).unwrap();
    }
    for pane in made {
        assert_eq!(server.kill(pane, &tag("ann")).unwrap(), tmux::KillOutcome::Killed);
    }
}

#[test]
fn twenty_panes_leave_user_state_unchanged() {
    on_all_servers(|bench| {
        let _person = bench.attach_user();
        bench.run(["resize-pane", "-Z", "-t", "=main:"]);
        // Else tmux itself renames it, a moment after something began in it.
        bench.run(["rename-window", "-t", "=main:", "mine"]);
        assert!(bench.run(["show-environment", "-t", "=main:"]).contains("SSH_AUTH_SOCK=/a/socket"));
        let before = belongings(bench);
        let (mut server, _notices) = bench.connect();
        let session = server.pane_session("%0".parse().unwrap()).unwrap();
        let made = server.new_window(session, "team", &idle_command()).unwrap();
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
fn zoomed_team_pane_stays_zoomed() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let session = server.pane_session("%0".parse().unwrap()).unwrap();
        let made = server.new_window(session, "team", &idle_command()).unwrap();
        let other = server.split(made.window, &idle_command()).unwrap();
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
        server.tag_pane(other.pane, &tag("ann"), &label("")).unwrap();
        let third = server.split(made.window, &idle_command()).unwrap();
        server.apply_layout(made.window, "tiled").unwrap();
        assert!(server.list_panes().unwrap().iter().any(|row| row.pane == third.pane && row.is_zoomed));
        server.kill(other.pane, &tag("ann")).unwrap();
        assert_eq!(zoom(), format!("1 {}", made.pane));
        server.tag_pane(made.pane, &tag("bob"), &label("")).unwrap();
        server.kill(made.pane, &tag("bob")).unwrap();
        assert_eq!(zoom(), format!("0 {}", third.pane));
    });
}

#[test]
fn attached_user_sees_the_message_unexpanded() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        assert!(!server.show_message("nobody reads this", &[]).unwrap());
        let _person = bench.attach_user();
        assert!(!server.show_message("ann@survey asks for permission", &[]).unwrap());
        let clients = bench.run(["list-clients", "-F", "#{client_control_mode} #{client_name}"]);
        let client = clients.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().to_owned();
        let told = bench.run(["show-messages", "-t", &client]);
        assert!(told.contains("ann@survey asks for permission"), "{told}");
        assert!(server.show_message("#(touch x)", &[]).is_err());
    });
}

#[test]
fn user_viewing_the_pane_gets_no_message() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let _person = bench.attach_user();
        let shown = bench.run(["list-clients", "-F", "#{client_control_mode} #{pane_id}"]);
        let shown = shown.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().parse().unwrap();
        assert!(server.show_message("seen by who looks there", &[shown]).unwrap());
        let other = "%99".parse().unwrap();
        assert!(!server.show_message("ann has ended", &[shown, other]).unwrap(), "the other is not seen");
        assert!(!server.show_message("bob has ended", &[other]).unwrap());
        let clients = bench.run(["list-clients", "-F", "#{client_control_mode} #{client_name}"]);
        let client = clients.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().to_owned();
        let told = bench.run(["show-messages", "-t", &client]);
        assert!(told.contains("bob has ended") && !told.contains("seen by who"), "{told}");
    });
}
