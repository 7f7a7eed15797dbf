//! Panes under bad conditions: a tmux that hangs or is full, another daemon's panes beside ours, configurations of every
//! kind, keys that somebody presses, a flood.

use harness::{House, Mcp, Processes, Vitals};
use serde_json::json;
use std::process::{Child, Command};
use std::time::Duration;

/// A daemon outside of tmux, of that house, on that server.
fn daemon(house: &House, server: &House, limit: &str) -> Child {
    let mut shell = house.command("sh");
    let program = harness::programs().join("teamd");
    shell.args(["-c", &format!("{limit} exec \"$0\" -S \"$1\"")]).arg(program).arg(server.tmux_socket());
    let teamd = shell.spawn().unwrap();
    house.until_answered();
    teamd
}

fn server(house: &House) -> u32 {
    house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap()
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
}

#[test]
fn a_server_that_hangs_holds_up_neither_mail_nor_status() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    let (server, before) = (server(&house), threads(house.daemon()));
    signal("STOP", server);
    let spawning = house.teamctl_running(["spawn", "bob", "--", "sleep", "3600"]);
    let mut sender = Mcp::of(&house, &["--team", "survey"]);
    for n in 0..1_000 {
        let message = json!({"recipient": "ann", "content": format!("the {n}th"), "summary": "s"});
        sender.call("SendMessage", &message).unwrap();
        if n % 100 == 0 {
            assert_eq!(house.member("ann").unwrap()["phase"], "running");
        }
    }
    sender.end();
    assert_eq!(house.inbox("survey", "ann").len(), 1_000);
    let said = spawning.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(75), "{said:?}");
    assert!(threads(house.daemon()) <= before + 1, "nothing piles up");
    signal("CONT", server);
    house.until("its name is free", || {
        (house.teamctl(["spawn", "bob", "--", "sleep", "3600"]).code == 0).then_some(())
    });
    house.end();
}

/// Both have them in a session of the same name.
#[test]
fn a_hidden_pane_of_another_root_stays_as_it_is() {
    let (house, other) = (House::with_team(), House::empty());
    let mut teamd = daemon(&other, &house, "");
    other.teamctl(["create", "survey"]).ok();
    let hide = |house: &House| {
        let pane = house.json(["spawn", "ann", "--", "sleep", "3600"])["pane"].as_str().unwrap().to_owned();
        house.teamctl(["hide", "ann"]).ok();
        pane
    };
    let (ours, theirs) = (hide(&house), hide(&other));
    let place = |pane: &str| {
        let format = "#{window_id} #{session_name} #{pane_pid} #{pane_dead}";
        house.tmux(["display-message", "-p", "-t", pane, format])
    };
    let before = place(&theirs);
    assert!(before.contains("_teamd-hidden") && place(&ours).contains("_teamd-hidden"), "{before}");
    house.teamctl(["show", "ann"]).ok();
    assert!(!place(&ours).contains("_teamd-hidden"));
    assert_eq!(place(&theirs), before);
    house.teamctl(["hide", "ann"]).ok();
    house.kill_9(house.daemon());
    house.start_daemon();
    house.teamctl(["kill", "ann"]).ok();
    assert_eq!(place(&theirs), before);
    house.teamctl(["delete", "survey"]).ok();
    house.teamctl(["down"]).ok();
    assert_eq!(place(&theirs), before);
    other.teamctl(["show", "ann"]).ok();
    assert!(!place(&theirs).contains("_teamd-hidden"), "it is theirs to show");
    other.teamctl(["kill", "ann"]).ok();
    other.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    other.end();
    house.end();
}

#[test]
fn of_two_daemons_on_one_server_neither_touches_the_others_panes() {
    let (house, other) = (House::with_team(), House::empty());
    let mut teamd = daemon(&other, &house, "");
    other.teamctl(["create", "survey"]).ok();
    let pid = |house: &House| house.json(["spawn", "ann", "--", "sleep", "3600"])["pid"].as_u64().unwrap();
    let (ours, theirs) = (Processes::one(pid(&house) as u32), Processes::one(pid(&other) as u32));
    teamd.kill().unwrap();
    teamd.wait().unwrap();
    house.teamctl(["kill", "ann"]).ok();
    assert!(ours.ended_within(Duration::from_secs(5)));
    let mut teamd = daemon(&other, &house, "");
    other.until("it is adopted", || (other.member("ann")?["phase"] == "running").then_some(()));
    house.kill_9(house.daemon());
    house.start_daemon();
    assert!(!theirs.ended_within(Duration::ZERO));
    house.teamctl(["spawn", "bob", "--", "sleep", "3600"]).ok();
    other.teamctl(["kill", "ann"]).ok();
    other.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    assert_eq!(house.member("bob").unwrap()["phase"], "running");
    other.end();
    house.end();
}

/// It needs a descriptor for each pane, as the system does a terminal.
#[test]
fn a_server_that_is_out_of_descriptors_is_told_of_and_nobody_is_left_half_started() {
    let house = House::empty();
    let gone = Processes::one(server(&house));
    house.tmux(["kill-server"]);
    assert!(gone.ended_within(Duration::from_secs(5)));
    let mut shell = house.command("sh");
    shell.args(["-c", "ulimit -n 24; exec tmux -S \"$0\" new-session -d -s user -x 200 -y 50 -- cat -"]);
    assert!(shell.arg(house.tmux_socket()).status().unwrap().success());
    let mut teamd = daemon(&house, &house, "");
    house.teamctl(["create", "survey"]).ok();
    let mut spawned = 0;
    let said = loop {
        let ran = house.teamctl(["spawn", &format!("a{spawned}"), "--", "sleep", "3600"]);
        if ran.code != 0 {
            break ran;
        }
        spawned += 1;
        assert!(spawned < 24, "there is a limit");
    };
    assert!([74, 75].contains(&said.code) && spawned > 0, "{said:?}");
    assert_eq!(house.member(&format!("a{spawned}")), None);
    assert_eq!(house.config()["members"].as_array().unwrap().len(), 1 + spawned);
    house.teamctl(["kill", "a0"]).ok();
    house.until("there is room again", || {
        (house.teamctl(["spawn", "bob", "--", "sleep", "3600"]).code == 0).then_some(())
    });
    for name in (1..spawned).map(|n| format!("a{n}")).chain(["bob".to_owned()]) {
        house.teamctl(["kill", &name]).ok();
    }
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

#[test]
fn of_sixteen_who_spawn_one_name_at_once_one_does() {
    let house = House::with_team();
    let all: Vec<Child> =
        (0..16).map(|_| house.teamctl_running(["spawn", "ann", "--", "sleep", "3601"])).collect();
    let codes: Vec<i32> =
        all.into_iter().map(|child| child.wait_with_output().unwrap().status.code().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 73).count(), 15, "{codes:?}");
    let running = Processes::marked(&house.mark()).list();
    assert_eq!(running.iter().filter(|line| line.ends_with("sleep 3601")).count(), 1, "{running:#?}");
    house.end();
}

#[test]
fn keys_that_somebody_presses_in_its_pane_reach_the_agent_alone() {
    let house = House::with_team();
    let agent = |name: &str| {
        let spawned = house.json(["spawn", name, "--", "sleep", "3600"]);
        (spawned["pane"].as_str().unwrap().to_owned(), spawned["pid"].as_u64().unwrap())
    };
    let (pane, pid) = agent("ann");
    house.tmux(["send-keys", "-t", &pane, "C-z"]);
    house.until("it is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.contains(") T ").then_some(())
    });
    assert_eq!(house.member("ann").unwrap()["phase"], "running");
    house.teamctl(["send", "ann", "hello"]).ok();
    house.teamctl(["kill", "ann"]).ok();
    let (pane, _) = agent("bob");
    house.tmux(["send-keys", "-t", &pane, "C-c"]);
    house.until("its end is told", || {
        let told = house.told("bob", "teammate_terminated");
        told.first()?["message"].as_str()?.contains("signal 2").then_some(())
    });
    house.end();
}

/// A line or two of what people have in theirs, each of which has hurt somebody's program.
const CONFIGURATIONS: [&str; 12] = [
    "set -g remain-on-exit on",
    "set-hook -g after-split-window 'rename-window hooked'\nset-hook -g after-new-window 'select-window -t :{start}'",
    "set-hook -g pane-exited 'display-message -p \"%exit\"'\nset-hook -g after-kill-pane 'select-layout tiled'",
    "set -g default-command 'exec false'",
    "set -g default-shell /usr/sbin/nologin",
    "set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on",
    "set -g mouse on\nset -g focus-events on\nset -g set-clipboard on",
    "set -g destroy-unattached on",
    "set -g detach-on-destroy off\nset -g exit-empty on",
    "set -s command-alias[10] 'zoom=resize-pane -Z'\nset -s command-alias[11] 'splitp=split-window'",
    "set -g synchronize-panes on\nset -g automatic-rename on\nset -g allow-rename on",
    "set -g status off\nset -g history-limit 0\nset -g escape-time 0\nunbind -a\nset -g prefix None",
];

#[test]
fn under_a_dozen_configurations_an_agent_comes_is_seen_and_goes() {
    for conf in CONFIGURATIONS {
        // With nobody attached, this option alone would take the user's session away.
        let house = match conf.contains("destroy-unattached on") {
            true => House::with_conf("set -g destroy-unattached off"),
            false => House::with_conf(conf),
        };
        house.tmux(["set-option", "-t", "=user:", "destroy-unattached", "off"]);
        if conf.contains("destroy-unattached on") {
            house.tmux(["set-option", "-g", "destroy-unattached", "on"]);
        }
        house.start_daemon();
        house.teamctl(["create", "survey"]).ok();
        for name in ["ann", "bob"] {
            house.teamctl(["spawn", name, "--", "sh", "-c", "echo it is $0; exec sleep 3600", name]).ok();
            house.until(conf, || house.teamctl(["capture", name]).stdout.contains(name).then_some(()));
        }
        house.teamctl(["kill", "ann"]).ok();
        let left = house.tmux(["list-panes", "-a", "-F", "#{@teamd_name}"]);
        let left: Vec<&str> = left.lines().filter(|name| !name.is_empty()).collect();
        assert_eq!(left, ["bob"], "{conf}");
        house.teamctl(["kill", "bob"]).ok();
        house.end();
    }
}

#[test]
fn a_flood_in_a_pane_is_none_of_the_daemons() {
    let house = House::with_team();
    let (daemon, cwd) = (house.daemon(), house.path("").display().to_string());
    let before = Vitals::of(daemon).unwrap().resident;
    let flood = "yes 'a flood of words' | head -c 30000000; touch out/over; exec sleep 3600";
    house.teamctl(["spawn", "ann", "--cwd", &cwd, "--", "sh", "-c", flood]).ok();
    house.until("it is over", || {
        assert_eq!(house.member("ann").unwrap()["phase"], "running");
        house.path("out/over").exists().then_some(())
    });
    let grown = Vitals::of(daemon).unwrap().resident.saturating_sub(before);
    assert!(grown < 2_048, "{grown} kB");
    house.end();
}

/// The daemon takes more descriptors for itself, and no core dump.
#[test]
fn an_agent_without_a_pane_has_the_limits_that_its_daemon_was_started_with() {
    let house = House::empty();
    let mut teamd = daemon(&house, &house, "umask 027; ulimit -S -n 200; ulimit -S -c 1000;");
    house.teamctl(["create", "survey"]).ok();
    let cwd = house.path("").display().to_string();
    let says = "echo $(ulimit -S -n) $(ulimit -S -c) $(umask) >out/limits; exec sleep 3600";
    house.teamctl(["spawn", "ann", "--backend", "in-process", "--cwd", &cwd, "--", "sh", "-c", says]).ok();
    let limits =
        house.until("its limits", || Some(house.read("out/limits")).filter(|text| text.ends_with('\n')));
    assert_eq!(limits.trim(), "200 1000 0027");
    house.teamctl(["kill", "ann"]).ok();
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}
