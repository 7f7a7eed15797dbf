//! Agents die: the cause is told apart, and the lead is told once.

use harness::House;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// What the lead was told of a member's end.
fn told(house: &House, name: &str) -> Vec<String> {
    house.told(name, "teammate_terminated").iter().map(|text| text["message"].to_string()).collect()
}

/// Waits for the word, and sees that the member is gone with everything of it.
fn dies(house: &House, name: &str, cause: &str) {
    house.until("the lead is told", || (!told(house, name).is_empty()).then_some(()));
    house.until("the member is gone", || house.member(name).is_none().then_some(()));
    let told = told(house, name);
    assert_eq!(told.len(), 1, "once: {told:?}");
    assert!(told[0].contains(cause), "{cause}: {told:?}");
    assert!(!house.read("root/teams/survey/config.json").contains(&format!("\"{name}@")));
    let panes = house.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
    assert!(!panes.lines().any(|line| line == name), "{panes}");
}

fn pane(house: &House, name: &str) -> String {
    house.member(name).unwrap()["pane"].as_str().unwrap().to_owned()
}

#[test]
fn by_its_own_exit() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", "sh", "-c", "exit 3"]).ok();
    dies(&house, "ann", "exit 3");
    house.end();
}

#[test]
fn by_a_signal() {
    let house = House::with_team();
    let pid = house.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].as_u64().unwrap();
    house.kill_9(pid as u32);
    dies(&house, "ann", "signal 9");
    house.end();
}

#[test]
fn by_a_killed_pane() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "children"]).ok();
    house.teamctl(["spawn", "bob", "--", "sleep", "3600"]).ok();
    house.tmux(["kill-pane", "-t", &pane(&house, "ann")]);
    dies(&house, "ann", "pane killed");
    assert_eq!(house.member("bob").unwrap()["phase"], "running");
    house.end();
}

#[test]
fn with_its_join_and_then_its_children_too() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "children"]).ok();
    let join = house.tmux(["display-message", "-p", "-t", &pane(&house, "ann"), "#{pane_pid}"]);
    house.kill_9(join.parse().unwrap());
    dies(&house, "ann", "lost");
    house.end();
}

#[test]
fn with_the_tmux_server() {
    let house = House::empty();
    // It survives the server.
    let mut teamd = house.start_teamd();
    house.teamctl(["create", "survey"]).ok();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "children"]).ok();
    let server: u32 = house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap();
    house.kill_9(server);
    house.until("the lead is told", || (!told(&house, "ann").is_empty()).then_some(()));
    assert!(told(&house, "ann")[0].contains("tmux gone"), "{:?}", told(&house, "ann"));
    house.until("the member is gone", || house.member("ann").is_none().then_some(()));
    // A new server, and with it strangers' panes under the old ids; then life goes on.
    house.tmux(["new-session", "-d", "-s", "user", "--", "cat", "-"]);
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    house.teamctl(["kill", "ann"]).ok();
    assert!(house.tmux(["list-panes", "-a"]).lines().count() >= 1);
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

#[test]
fn while_no_daemon_looks() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    let pid = house.member("ann").unwrap()["pid"].as_u64().unwrap();
    house.kill_9(house.daemon());
    house.kill_9(pid as u32);
    house.until("its join leaves word", || {
        let state = std::fs::read_dir(house.path("state/teamd")).ok()?.flatten().next()?.path();
        std::fs::read_dir(state)
            .ok()?
            .flatten()
            .find(|e| e.file_name().to_string_lossy().starts_with("end-"))
            .map(drop)
    });
    house.start_daemon();
    dies(&house, "ann", "signal 9");
    house.end();
}

#[test]
fn by_a_kill_whose_daemon_dies_for_good() {
    let house = House::with_team();
    let told = house.path("told");
    let deaf = format!("trap \"echo >'{}'\" TERM; while :; do read x; done", told.display());
    house.teamctl(["spawn", "ann", "--restart", "on-failure", "--", "sh", "-c", &deaf]).ok();
    let mut kill = house.teamctl_running(["kill", "ann"]);
    house.until("its program is told", || told.exists().then_some(()));
    house.kill_9(house.daemon());
    kill.wait().unwrap();
    house.start_daemon();
    dies(&house, "ann", "killed");
    let past = house.json(["status"])["teams"][0]["past"].clone();
    assert!(past[0]["again_at"].is_null() && past[0]["rests"] != true, "{past}");
    house.end();
}

/// Up to tmux 3.6 this crashed a server with a control client, where panes closed by themselves.
#[test]
fn all_at_once_without_harm_to_the_server() {
    let house = House::with_team();
    let server = house.tmux(["display-message", "-p", "#{pid}"]);
    for round in 0..5 {
        for name in ["ann", "bob", "cat"] {
            house.teamctl(["spawn", name, "--", "sleep", "3600"]).ok();
        }
        let status = house.json(["status"]);
        let members = status["teams"][0]["members"].as_array().unwrap().clone();
        let pids: Vec<String> =
            members.iter().filter_map(|member| member["pid"].as_u64()).map(|pid| pid.to_string()).collect();
        assert!(std::process::Command::new("kill").arg("-9").args(&pids).status().unwrap().success());
        house.until("all are gone", || {
            (house.json(["status"])["teams"][0]["members"].as_array()?.len() == 1).then_some(())
        });
        assert_eq!(server, house.tmux(["display-message", "-p", "#{pid}"]), "round {round}");
    }
    for name in ["ann", "bob", "cat"] {
        assert_eq!(told(&house, name).len(), 5);
    }
    house.until("no dead pane is left", || {
        let dead = house.tmux(["list-panes", "-a", "-F", "#{pane_dead}"]);
        (!dead.contains('1')).then_some(())
    });
    house.end();
}

#[test]
fn with_its_pane_where_no_daemon_closes_it() {
    let house = House::with_team();
    let pid = house.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].as_u64().unwrap();
    tell_of_closed_panes(&house);
    house.kill_9(house.daemon());
    house.kill_9(pid as u32);
    house.until("tmux tells of a closed pane", || {
        let panes = house.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
        (house.path("out/closed").exists() && !panes.contains("ann")).then_some(())
    });
    house.start_daemon();
    dies(&house, "ann", "signal 9");
    house.end();
}

fn tell_of_closed_panes(house: &House) {
    let tell = format!("run-shell 'touch {}'", house.path("out/closed").display());
    house.tmux(["set-hook", "-g", "after-kill-pane", &tell]);
}

/// A join in a pane that bears its mark and stays when it ends, at a daemon that is us; the pane, and our end of its link.
fn join_of_ours(house: &House) -> (String, UnixStream) {
    let socket = house.path("run/test.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let program = harness::programs().join("teamd-pane").display().to_string();
    let join = [&program, "join", "a-1", "--socket", &socket.display().to_string()];
    let words = [&["new-window", "-d", "-P", "-F", "#{pane_id}", "--"], &join[..]].concat();
    let pane = house.tmux_ran(&words).stdout.trim_end().to_owned();
    let (join, _) = listener.accept().unwrap();
    for (option, value) in [("@teamd", "a-1"), ("remain-on-exit", "on")] {
        house.tmux(["set-option", "-p", "-t", &pane, option, value]);
    }
    tell_of_closed_panes(house);
    std::fs::remove_file(socket).unwrap();
    (pane, join)
}

/// Its first process has closed it itself.
fn is_closed(house: &House, pane: &str) {
    house.until("its pane is closed", || house.path("out/closed").exists().then_some(()));
    assert!(!house.tmux(["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|line| line == pane));
}

/// Killed between the new pane and the roster, a daemon leaves a pane that the next one knows nothing of.
#[test]
fn with_the_pane_of_a_start_that_nobody_remembers() {
    let house = House::empty();
    let (pane, mut join) = join_of_ours(&house);
    join.write_all(b"\"refused\"\n").unwrap();
    is_closed(&house, &pane);
    house.end();
}

/// Takes its fifteen seconds: the wait is what is told of.
#[test]
fn with_the_pane_of_a_start_to_which_nobody_says_a_word() {
    let house = House::empty();
    let begin = Instant::now();
    let (pane, mut join) = join_of_ours(&house);
    let mut hello = [0; 1];
    join.read_exact(&mut hello).unwrap();
    is_closed(&house, &pane);
    assert!(begin.elapsed() >= Duration::from_secs(14), "a daemon under load is given its time");
    house.end();
}
