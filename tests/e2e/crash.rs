//! The daemon dies and comes back: agents never notice, and nobody is told a thing that isn't so.

use harness::{House, Whom, start_time};
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;

fn team_of(count: usize) -> House {
    let house = House::with_team();
    spawn_recorders(&house, count);
    house
}

/// Agents that write down each wake.
fn spawn_recorders(house: &House, count: usize) {
    let cwd = house.path("").display().to_string();
    for n in 0..count {
        let record = format!("exec '{}' record out/a{n} <&$TEAMD_WAKE_FD", house.agent());
        house.teamctl(["spawn", &format!("a{n}"), "--cwd", &cwd, "--", "sh", "-c", &record]).ok();
    }
}

/// Pids and start times of all agents.
fn lives(house: &House) -> Vec<(u64, Option<u64>)> {
    let status = house.json(["status"]);
    let members = status["teams"][0]["members"].as_array().unwrap();
    let pids = members.iter().filter_map(|member| member["pid"].as_u64());
    pids.map(|pid| (pid, start_time(pid as u32))).collect()
}

#[test]
fn a_new_daemon_adopts_every_living_agent() {
    let house = team_of(6);
    let before = lives(&house);
    for _ in 0..3 {
        house.kill_9(house.daemon());
        let status = house.teamctl(["status", "--json"]);
        assert_eq!(status.code, 69, "{status:?}");
        house.start_daemon();
        house.until("all are back", || {
            let status = house.json(["status"]);
            let members = status["teams"][0]["members"].as_array()?.clone();
            (members.iter().filter(|member| member["phase"] == "running").count() == 6).then_some(())
        });
        assert_eq!(before, lives(&house), "the same processes");
    }
    house.teamctl(["send", "a3", "still there?"]).ok();
    house.until("its line still wakes it", || {
        let size = house.inbox("survey", "a3").len();
        let lines = house.read("out/a3");
        (size == 1 && lines.lines().count() > 1 && !lines.contains("end of line")).then_some(())
    });
    let lead = house.inbox("survey", "team-lead");
    assert!(lead.is_empty(), "nobody ended: {lead:?}");
    house.end();
}

#[test]
fn a_new_daemon_is_started_in_the_session_of_its_panes_and_never_in_another_of_that_name() {
    for taken in [false, true] {
        let house = House::empty();
        if taken {
            house.tmux(["new-session", "-d", "-s", "teamd", "--", "cat", "-"]);
        }
        house.start_daemon();
        house.teamctl(["create", "survey"]).ok();
        let session = |name: &str| {
            let spawned = house.json(["spawn", name, "--agent", "worker", "--backend", "window"]);
            house.tmux(["display-message", "-p", "-t", spawned["pane"].as_str().unwrap(), "#{session_name}"])
        };
        let home = session("ann");
        assert_eq!((home == "teamd", home.starts_with("teamd")), (!taken, true));
        for name in ["bob", "cat"] {
            house.kill_9(house.daemon());
            house.start_daemon();
            assert_eq!(session(name), home);
        }
        let all = house.tmux(["list-sessions", "-F", "#{session_name}"]);
        let named = all.lines().filter(|name| name.starts_with("teamd")).count();
        assert_eq!(named, if taken { 2 } else { 1 }, "{all}");
        if taken {
            house.tmux(["kill-session", "-t", "=teamd"]);
        }
        house.end();
    }
}

#[test]
fn a_session_of_that_name_that_is_not_its_own_is_told_of() {
    let house = House::empty();
    house.tmux(["new-session", "-d", "-s", "teamd", "--", "cat", "-"]);
    let mut up = house.command(harness::programs().join("teamctl"));
    up.env("TMUX", format!("{},0,0", house.tmux_socket().display())).arg("up");
    let said = String::from_utf8(up.output().unwrap().stderr).unwrap();
    assert!(said.contains("session teamd is not this teamd's: new panes go into teamd-"), "{said}");
    assert_eq!(house.tmux(["list-windows", "-t", "=teamd:", "-F", "x"]), "x", "nothing was put there");
    house.tmux(["kill-session", "-t", "=teamd"]);
    house.end();
}

/// From outside of tmux, as a unit of systemd asks for it, it would begin on a server of its own, from which nobody can
/// close these panes.
#[test]
fn it_comes_back_on_the_tmux_server_of_its_panes_wherever_it_is_asked_for() {
    let house = team_of(1);
    let socket = house.tmux_socket().display().to_string();
    house.kill_9(house.daemon());
    let ran = house.teamctl(["up"]);
    assert!(
        ran.stderr.contains(&format!("agents live on the tmux server {socket}: teamd goes there")),
        "{ran:#?}"
    );
    assert!(ran.ok().contains(&format!("tmux {socket}.")));
    house.until("it is back", || house.member("a0")?["pid"].as_u64());
    let pane = house.member("a0").unwrap()["pane"].as_str().unwrap().to_owned();
    house.teamctl(["kill", "a0"]).ok();
    assert!(!house.tmux(["list-panes", "-a", "-F", "#{pane_id}"]).lines().any(|line| line == pane));
    // Nobody lives there any more.
    house.kill_9(house.daemon());
    let ran = house.teamctl(["up"]);
    assert_eq!(ran.stderr, "");
    assert!(!ran.ok().contains(&socket));
    house.end();
}

#[test]
fn sending_reading_and_tasks_work_without_a_daemon() {
    let house = team_of(1);
    house.kill_9(house.daemon());
    house.teamctl(["send", "a0", "hello", "--summary", "greeting"]).ok();
    assert_eq!(house.json(["inbox", "a0"])["messages"][0]["text"], "hello");
    house.teamctl(["task", "create", "count"]).ok();
    house.teamctl(["task", "claim"]).ok();
    house.teamctl(["task", "done", "2"]).ok();
    house.teamctl(["spawn", "x", "--", "true"]).fails(69);
    house.start_daemon();
    house.end();
}

#[test]
fn a_request_in_flight_fails_at_once_when_the_daemon_dies() {
    let house = team_of(1);
    let mut waiting = house.teamctl_running(["shutdown", "a0", "--grace", "1h"]);
    house.until("it is asked", || (house.member("a0")?["phase"] == "stopping").then_some(()));
    house.kill_9(house.daemon());
    let status = waiting.wait().unwrap();
    assert_eq!(status.code(), Some(69));
    let mut said = String::new();
    waiting.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("went away"), "{said}");
    house.start_daemon();
    house.end();
}

#[test]
fn a_second_daemon_is_refused_and_names_the_first() {
    let house = House::start();
    let first = house.daemon();
    let output = house.teamd().output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("pid {first}")), "{said}");
    assert_eq!(house.daemon(), first);
    house.end();
}

/// Where the daemon keeps its state, in the house.
fn state_of(house: &House) -> String {
    let name = std::fs::read_dir(house.path("state/teamd")).unwrap().flatten().next().unwrap().file_name();
    format!("state/teamd/{}", name.to_str().unwrap())
}

fn socket_of(house: &House) -> std::path::PathBuf {
    let place = std::fs::read_dir(house.path("run/teamd")).unwrap().flatten().next().unwrap();
    place.path().join("control.sock")
}

fn tell(signal: &str, pid: u32) {
    std::process::Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a foreign writer's lock")]
fn a_daemon_that_is_told_twice_does_not_wait_for_what_is_under_way() {
    let house = team_of(1);
    let daemon = house.daemon();
    let lock = house.root().join("teams/survey/inboxes/team-lead.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let (agent, _) = lives(&house)[0];
    tell("KILL", u32::try_from(agent).unwrap());
    // Its end is to be told to the lead.
    house.until("its end is known", || lives(&house).is_empty().then_some(()));
    tell("TERM", daemon);
    house.until("it serves nobody", || (house.teamctl(["status"]).code == 69).then_some(()));
    assert!(start_time(daemon).is_some(), "it did not wait for the lock");
    tell("TERM", daemon);
    assert!(harness::Processes::one(daemon).ended_within(Duration::from_secs(3)), "it waits on");
    std::fs::remove_dir(&lock).unwrap();
    house.start_daemon();
    house.until("the next one tells", || (!house.told("a0", "teammate_terminated").is_empty()).then_some(()));
    house.end_after_kills();
}

/// Its number and start time are a stranger's now.
#[test]
fn after_a_start_of_the_machine_no_process_is_taken_for_an_agent_of_before() {
    let house = team_of(1);
    house.kill_9(house.daemon());
    let mut stranger = house.command("sleep").arg("3600").spawn().unwrap();
    let known = json!({"pid": stranger.id(), "start": start_time(stranger.id())});
    for line in house.those(Whom::Join) {
        house.kill_9(line.split(' ').next().unwrap().parse().unwrap());
    }
    let path = format!("{}/roster.json", state_of(&house));
    let mut roster: Value = serde_json::from_str(&house.read(&path)).unwrap();
    assert!(roster["boot"].is_string(), "{roster}");
    roster["boot"] = "another".into();
    roster["agents"][0]["join"] = known;
    house.put(&path, roster.to_string());
    house.start_daemon();
    house.until("its loss is told", || (!house.told("a0", "teammate_terminated").is_empty()).then_some(()));
    house.until("it is off the team", || house.member("a0").is_none().then_some(()));
    assert!(start_time(stranger.id()).is_some(), "the stranger was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    house.end();
}

#[test]
fn a_daemon_that_is_told_to_stop_leaves_its_agents() {
    let house = team_of(2);
    let before = lives(&house);
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1"] {
        let daemon = house.daemon();
        tell(signal, daemon);
        house.until("it is gone", || (house.teamctl(["status"]).code == 69).then_some(()));
        house.start_daemon();
        house.until("all are back", || (lives(&house).len() == 2).then_some(()));
        assert_eq!(before, lives(&house));
    }
    house.end();
}

/// The pane that `up` started it in, as a person closes it, or starts it anew with something of their own.
#[test]
fn a_daemon_whose_pane_is_closed_ends_in_order_and_leaves_its_agents() {
    let house = team_of(2);
    let before = lives(&house);
    let (mut gone, socket) = (Vec::new(), socket_of(&house));
    for close in [&["kill-pane"][..], &["respawn-pane", "-k", "cat", "-"]] {
        let daemon = house.daemon();
        let panes = house.tmux(["list-panes", "-a", "-F", "#{pane_pid} #{pane_id}"]);
        let own = panes.lines().find_map(|line| line.strip_prefix(&format!("{daemon} "))).unwrap();
        let mut asked = house.teamctl_running(["shutdown", "a0", "--grace", "1h"]);
        house.until("something is under way", || (house.member("a0")?["phase"] == "stopping").then_some(()));
        let (verb, rest) = close.split_first().unwrap();
        assert_eq!(house.tmux_ran(&[&[verb, "-t", own], rest].concat()).code, 0);
        assert!(harness::Processes::one(daemon).ended_within(Duration::from_secs(5)), "it lives on unseen");
        assert_eq!(asked.wait().unwrap().code(), Some(69));
        assert!(!socket.exists(), "it ended in no order: a panic, say");
        house.start_daemon();
        house.until("all are back", || (lives(&house).len() == 2).then_some(()));
        assert_eq!(before, lives(&house));
        gone.push(own.to_owned());
    }
    assert!(house.inbox("survey", "team-lead").is_empty(), "nobody ended");
    assert_eq!(house.tmux(["display-message", "-p", "-t", &gone[1], "#{pane_current_command}"]), "cat");
    house.tmux(["kill-pane", "-t", &gone[1]]);
    house.end();
}

#[test]
fn a_member_that_a_foreign_writer_dropped_is_put_back() {
    let house = team_of(1);
    let config = house.root().join("teams/survey/config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["members"].as_array_mut().unwrap().truncate(1);
    std::io::Write::write_all(
        &mut std::fs::File::create(&config).unwrap(),
        serde_json::to_string_pretty(&value).unwrap().as_bytes(),
    )
    .unwrap();
    house.until("it is back", || {
        house.read("root/teams/survey/config.json").contains("\"a0@survey\"").then_some(())
    });
    house.end();
}

#[test]
fn a_daemon_outlives_its_terminal_and_knows_that_events_arrive() {
    let house = House::empty();
    let mut teamd = house.teamd().stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(teamd.stdout.take());
    house.until_answered();
    for name in ["one", "two", "three"] {
        house.teamctl(["create", name]).ok();
    }
    assert_eq!(house.json(["status"])["daemon"]["watch"], "events");
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

#[test]
fn a_daemon_of_another_root_does_not_take_a_living_ones_socket() {
    let house = House::start();
    let socket = socket_of(&house);
    let mut other = house.teamd();
    other.arg("--root").arg(house.path("other")).arg("--socket").arg(&socket);
    let output = other.output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert_eq!(house.json(["status"])["daemon"]["root"], house.root().display().to_string());
    house.end();
}

/// The same root seen from another session of the same user, with directories of its own.
#[test]
fn a_second_daemon_is_refused_whatever_its_directories() {
    let house = House::start();
    let mut second = house.teamd();
    let output =
        second.env("XDG_STATE_HOME", house.path("out")).env("XDG_RUNTIME_DIR", house.path("out")).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    house.end();
}

#[test]
fn a_stopped_daemon_is_told_from_a_dead_one_and_mail_still_goes() {
    // Not in a pane: there tmux lets whoever is stopped go on at once.
    let house = House::empty();
    let mut teamd = house.start_teamd();
    house.teamctl(["create", "survey"]).ok();
    spawn_recorders(&house, 1);
    let daemon = teamd.id().to_string();
    let signal = |name: &str| std::process::Command::new("kill").args(["-s", name, &daemon]).status();
    signal("STOP").unwrap();
    let said = house.teamctl(["status"]).fails(75);
    assert!(said.contains("does not answer"), "{said}");
    house.teamctl(["send", "a0", "hello"]).ok();
    signal("CONT").unwrap();
    house.until("it was woken", || house.read("out/a0").lines().nth(1).map(drop));
    house.teamctl(["kill", "a0"]).ok();
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

#[test]
fn of_many_that_start_teamd_at_once_each_is_told_that_it_runs() {
    let house = House::empty();
    let up = || {
        let mut command = house.command(harness::programs().join("teamctl"));
        command.env("TMUX", format!("{},0,0", house.tmux_socket().display())).arg("up").output().unwrap()
    };
    for _ in 0..3 {
        let ran: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..6).map(|_| scope.spawn(up)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(ran.iter().all(|ran| ran.status.success() && ran.stderr.is_empty()), "{ran:#?}");
        let daemons = house.those(Whom::Daemon);
        assert_eq!(daemons.len(), 1, "{daemons:#?}");
        house.kill_9(house.daemon());
    }
    house.start_daemon();
    house.end();
}

/// The kernel takes a moment to end a killed process, and until then it holds its lock and its socket.
#[test]
fn a_daemon_that_was_killed_this_instant_is_not_in_the_way_of_the_next() {
    let house = team_of(1);
    for _ in 0..10 {
        house.kill_9(house.daemon());
        house.start_daemon();
    }
    house.end();
}

#[test]
fn what_a_killed_daemon_was_writing_is_gone_with_the_next() {
    let house = team_of(1);
    house.kill_9(house.daemon());
    let state = state_of(&house);
    for of in ["roster.json", "leads.json", "policy-survey.json", "config-survey.json", "config-gone.json"] {
        house.put(&format!("{state}/.{of}.tmp.0123"), "{");
    }
    house.start_daemon();
    house.end();
}
