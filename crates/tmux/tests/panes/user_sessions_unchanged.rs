//! Tests that sessions, windows, options and clients of the user stay unchanged.

use tmux::TmuxServer;

use crate::test_server::{TestServer, idle_command, label, on_all_servers, tag};

/// Returns the state of the user's sessions, options and hooks, each with the command that prints
/// it. Lines with `team` are omitted, because the windows of the test have that name.
fn user_state(fixture: &TestServer) -> Vec<(String, String)> {
    let window =
        "#{window_id} #{window_active} #{window_zoomed_flag} #{window_layout} #{window_name} #{window_flags}";
    let client =
        "#{?client_control_mode,team,#{client_session} #{client_width}x#{client_height} #{client_flags}}";
    let queries: [&[&str]; 13] = [
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
    let without_team =
        |text: String| text.lines().filter(|line| !line.contains("team")).collect::<Vec<_>>().join("\n");
    queries.iter().map(|query| (query.join(" "), without_team(fixture.run(*query)))).collect()
}

/// Creates, tags and kills 20 panes.
fn create_and_kill_panes(server: &mut TmuxServer, window: tmux::WindowId) {
    let panes: Vec<_> = (0..20).map(|_| server.split(window, &idle_command()).unwrap().pane).collect();
    server.apply_layout(window, "tiled").unwrap();
    for pane in &panes {
        server.tag_pane(*pane, &tag("ann"), &label("ann")).unwrap();
    }
    for pane in panes {
        assert_eq!(server.kill(pane, &tag("ann")).unwrap(), tmux::KillOutcome::Killed);
    }
}

#[test]
fn twenty_panes_leave_user_state_unchanged() {
    on_all_servers(|fixture| {
        let _user = fixture.attach_user();
        fixture.run(["resize-pane", "-Z", "-t", "=main:"]);
        // A window without a fixed name is renamed a moment after a program has started in it.
        fixture.run(["rename-window", "-t", "=main:", "mine"]);
        assert!(fixture.run(["show-environment", "-t", "=main:"]).contains("SSH_AUTH_SOCK=/a/socket"));
        let before = user_state(fixture);
        let (mut server, _notices) = fixture.connect();
        let session = server.pane_session("%0".parse().unwrap()).unwrap();
        let created = server.new_window(session, "team", &idle_command()).unwrap();
        create_and_kill_panes(&mut server, created.window);
        for (before, after) in before.iter().zip(user_state(fixture)) {
            assert_eq!(before.1, after.1, "{}", before.0);
        }
        fixture.run(["set-hook", "-g", "session-closed[71]", "wait-for -S closed"]);
        drop(server);
        fixture.wait_for("closed");
        // Each command fails if the server has crashed.
        for _ in 0..50 {
            fixture.run(["list-panes", "-a"]);
        }
    });
}

#[test]
fn zoomed_team_pane_stays_zoomed() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let session = server.pane_session("%0".parse().unwrap()).unwrap();
        let created = server.new_window(session, "team", &idle_command()).unwrap();
        let other = server.split(created.window, &idle_command()).unwrap();
        let zoom_and_pane = || {
            fixture.run([
                "display-message",
                "-p",
                "-t",
                &created.window.to_string(),
                "#{window_zoomed_flag} #{pane_id}",
            ])
        };
        assert_eq!(zoom_and_pane(), format!("0 {}", created.pane));
        fixture.run(["resize-pane", "-Z", "-t", &created.pane.to_string()]);
        server.tag_pane(other.pane, &tag("ann"), &label("")).unwrap();
        let third = server.split(created.window, &idle_command()).unwrap();
        server.apply_layout(created.window, "tiled").unwrap();
        assert!(server.list_panes().unwrap().iter().any(|row| row.pane == third.pane && row.is_zoomed));
        server.kill(other.pane, &tag("ann")).unwrap();
        assert_eq!(zoom_and_pane(), format!("1 {}", created.pane));
        server.tag_pane(created.pane, &tag("bob"), &label("")).unwrap();
        server.kill(created.pane, &tag("bob")).unwrap();
        assert_eq!(zoom_and_pane(), format!("0 {}", third.pane));
    });
}

#[test]
fn attached_user_sees_the_message_unexpanded() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        assert!(!server.show_message("no client shows this", &[]).unwrap());
        let _user = fixture.attach_user();
        assert!(!server.show_message("ann@survey asks for permission", &[]).unwrap());
        let clients = fixture.run(["list-clients", "-F", "#{client_control_mode} #{client_name}"]);
        let client = clients.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().to_owned();
        let messages = fixture.run(["show-messages", "-t", &client]);
        assert!(messages.contains("ann@survey asks for permission"), "{messages}");
        assert!(server.show_message("#(touch x)", &[]).is_err());
    });
}

#[test]
fn user_viewing_the_pane_gets_no_message() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let _user = fixture.attach_user();
        let shown = fixture.run(["list-clients", "-F", "#{client_control_mode} #{pane_id}"]);
        let shown = shown.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().parse().unwrap();
        assert!(server.show_message("not for this client", &[shown]).unwrap());
        let other = "%99".parse().unwrap();
        assert!(
            !server.show_message("ann has ended", &[shown, other]).unwrap(),
            "no client shows the other pane"
        );
        assert!(!server.show_message("bob has ended", &[other]).unwrap());
        let clients = fixture.run(["list-clients", "-F", "#{client_control_mode} #{client_name}"]);
        let client = clients.lines().find_map(|line| line.strip_prefix("0 ")).unwrap().to_owned();
        let messages = fixture.run(["show-messages", "-t", &client]);
        assert!(messages.contains("bob has ended") && !messages.contains("not for this"), "{messages}");
    });
}
