//! `teamctl attach` in several terminals at once.

use harness::TestEnv;

/// A second tmux server, with a terminal in each of its sessions.
struct Terminals<'a> {
    env: &'a TestEnv,
    socket: String,
}

impl<'a> Terminals<'a> {
    fn new(env: &'a TestEnv) -> Terminals<'a> {
        Terminals { env, socket: env.path("outer").display().to_string() }
    }

    /// Runs a tmux command on the server of the terminals.
    fn tmux(&self, args: &[&str]) -> String {
        let mut command = self.env.command("tmux");
        let output = command.args(["-S", &self.socket, "-f", "/dev/null"]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Opens a terminal with `teamctl attach NAME`. Returns its pane when the member's pane is shown.
    fn attach(&self, name: &str, columns: &str, rows: &str) -> String {
        let count = views(self.env).len();
        let teamctl = harness::programs().join("teamctl").display().to_string();
        let script = format!("unset TMUX TMUX_PANE; exec '{teamctl}' attach {name}");
        let size = ["-x", columns, "-y", rows];
        let new = [&["new-session", "-d", "-P", "-F", "#{pane_id}"], &size[..], &["/bin/sh", "-c", &script]];
        let pane = self.tmux(&new.concat());
        self.env.wait_until(&format!("a terminal shows {name}"), || {
            (views(self.env).len() == count + 1).then_some(())
        });
        pane
    }
}

impl Drop for Terminals<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// The sessions of terminals: each with the number of its clients.
fn views(env: &TestEnv) -> Vec<String> {
    let sessions = env.tmux(["list-sessions", "-f", "#{@teamd_view}", "-F", "#{session_attached}"]);
    sessions.lines().map(str::to_owned).collect()
}

fn spawn(env: &TestEnv, name: &str) -> String {
    env.json(["spawn", name, "--", "cat"])["pane"].as_str().unwrap().to_owned()
}

fn is_zoomed(env: &TestEnv, pane: &str) -> bool {
    env.tmux(["display-message", "-p", "-t", pane, "#{window_zoomed_flag}#{pane_active}"]) == "11"
}

#[test]
fn two_terminals_type_into_two_members() {
    let env = TestEnv::with_team();
    let panes = [spawn(&env, "ann"), spawn(&env, "bob")];
    let sessions = env.tmux(["list-sessions", "-F", "#{session_name}"]);
    let label = env.tmux(["show-options", "-w", "-t", &panes[0]]);
    let terminals = Terminals::new(&env);
    let typing = [terminals.attach("ann", "200", "50"), terminals.attach("bob", "200", "50")];
    for (terminal, text) in typing.iter().zip(["alpha", "beta"]) {
        terminals.tmux(&["send-keys", "-t", terminal, text, "Enter"]);
    }
    let screen = |name: &str| env.teamctl(["capture", name]).stdout;
    env.wait_until("each member has its own text", || {
        (screen("ann").contains("alpha") && screen("bob").contains("beta")).then_some(())
    });
    assert!(!screen("ann").contains("beta") && !screen("bob").contains("alpha"));
    // Another program selects another pane.
    env.tmux(["select-pane", "-t", &panes[1]]);
    terminals.tmux(&["send-keys", "-t", &typing[0], "gamma", "Enter"]);
    env.wait_until("ann has it", || screen("ann").contains("gamma").then_some(()));
    drop(terminals);
    env.wait_until("the views are gone", || views(&env).is_empty().then_some(()));
    assert_eq!(env.tmux(["list-sessions", "-F", "#{session_name}"]), sessions);
    assert_eq!(env.tmux(["show-options", "-w", "-t", &panes[0]]), label);
    env.shut_down();
}

#[test]
fn small_terminal_shows_one_pane_at_a_time() {
    let env = TestEnv::with_team();
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let member = env.json(["spawn", name, "--backend", "window", "--", "cat"]);
        member["pane"].as_str().unwrap().to_owned()
    });
    // Side by side in one window, each has half of the terminal's columns.
    env.tmux(["join-pane", "-d", "-h", "-s", &bob, "-t", &ann]);
    let terminals = Terminals::new(&env);
    let small = terminals.attach("ann", "80", "24");
    env.wait_until("ann's pane is zoomed", || is_zoomed(&env, &ann).then_some(()));
    // Another terminal does not put ann's pane out of sight of the first one.
    terminals.attach("bob", "80", "24");
    env.wait_until("all panes are shown", || (!is_zoomed(&env, &ann)).then_some(()));
    assert!(!is_zoomed(&env, &bob));
    terminals.tmux(&["kill-session", "-t", &small]);
    drop(terminals);
    env.wait_until("the views are gone", || views(&env).is_empty().then_some(()));
    // The first server may still be ending.
    let terminals = Terminals { env: &env, socket: env.path("second").display().to_string() };
    terminals.attach("bob", "200", "50");
    assert!(!is_zoomed(&env, &bob));
    drop(terminals);
    env.shut_down();
}

/// When the last pane closes, tmux ends the member's session and the views with it. The tmux server and
/// the daemon go on.
#[test]
fn members_end_while_terminals_show_them() {
    let env = TestEnv::with_team();
    for name in ["ann", "bob"] {
        spawn(&env, name);
    }
    let terminals = Terminals::new(&env);
    for name in ["ann", "bob", "ann"] {
        terminals.attach(name, "100", "30");
    }
    env.teamctl(["kill", "ann", "bob"]).expect_success();
    let daemon = env.json(["status"])["daemon"]["pid"].clone();
    assert!(daemon.is_u64());
    drop(terminals);
    env.wait_until("the views are gone", || views(&env).is_empty().then_some(()));
    env.shut_down();
}
