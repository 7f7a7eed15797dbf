//! A program that can not begin, ends before its time, or comes back.

use super::{ends, heard, house, said, send, spawn, turn};
use crate::dialogs::signal;
use crate::state::state;
use harness::{House, Processes};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

#[test]
fn a_crash_in_a_turn_fails_that_turn_and_the_next_goes_on_with_the_session() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do crash"]);
    let told = turn(&house, 1);
    assert_eq!(told["idleReason"], "failed");
    let why = told["failureReason"].as_str().unwrap();
    assert!(
        why.contains("acp-agent has ended: exit 9") && why.contains("segmentation fault, nearly"),
        "{why}"
    );
    send(&house, "do talk");
    assert_eq!(turn(&house, 2)["idleReason"], "available");
    assert_eq!((heard(&house, "session/new").len(), heard(&house, "session/load").len()), (1, 1));
    ends(house);
}

#[test]
fn a_program_that_ends_again_and_again_is_given_up() {
    let house = house(&[]);
    spawn(&house, &["--prompt", "do crash"]);
    for number in 1..=3 {
        turn(&house, number);
        send(&house, "do crash");
    }
    let told = house.until("the lead is told", || said(&house, "teammate_terminated").pop());
    let how = told["message"].as_str().unwrap();
    assert!(how.contains("it ended 3 times in a row; the last time: acp-agent has ended: exit 9"), "{how}");
    house.end();
}

/// `spawn`, which must fail, and what it said.
fn refused(words: &[&str]) -> String {
    let house = house(words);
    let ran = house.teamctl(["spawn", "ann", "--agent", "scripted"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(house.member("ann").is_none_or(|member| member["phase"] != "running"));
    house.end();
    ran.stderr
}

#[test]
fn who_can_not_begin_is_no_member_and_says_why() {
    let said = refused(&["gone"]);
    assert!(said.contains("acp-agent has ended: exit 3") && said.contains("cannot find my head"), "{said}");
    let said = refused(&["locked"]);
    assert!(
        said.contains("acp-agent wants you to log in first (an API key): Authentication required"),
        "{said}"
    );
    let said = refused(&["old"]);
    assert!(said.contains("unsupported ACP protocol version 0"), "{said}");
}

#[test]
fn who_never_answers_is_waited_for_with_a_deadline() {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    let house = House::empty();
    let (mut near, far) = UnixStream::pair().unwrap();
    let mut command = house.command(harness::programs().join("teamd-acp"));
    command.args(["--patience", "1", "--"]).arg(harness::programs().join("acp-agent")).arg("mute");
    let mut driver = command.stdin(std::os::fd::OwnedFd::from(far)).spawn().unwrap();
    drop(command);
    let mut said = String::new();
    near.read_to_string(&mut said).unwrap();
    assert_eq!(driver.wait().unwrap().code(), Some(70));
    assert!(said.contains("acp-agent opened no session within 1 s"), "{said}");
    house.end();
}

#[test]
fn a_next_life_goes_on_with_the_session_of_the_last() {
    let house = house(&[]);
    spawn(&house, &["--restart", "on-failure", "--prompt", "do talk"]);
    turn(&house, 1);
    let join = house.member("ann").unwrap()["join"].as_u64();
    let pane = house.member("ann").unwrap()["pane"].as_str().unwrap().to_owned();
    let join = join.unwrap_or_else(|| {
        house.tmux(["display-message", "-p", "-t", &pane, "#{pane_pid}"]).parse().unwrap()
    });
    house.kill_9(u32::try_from(join).unwrap());
    house.until("it is there again", || (heard(&house, "session/load").len() == 1).then_some(()));
    house.until("it idles again", || (house.member("ann")?["activity"] == "idle").then_some(()));
    send(&house, "do talk");
    turn(&house, 2);
    ends(house);
}

/// Between the green light and its first word nobody knows of it but a daemon that is dead.
#[test]
fn one_that_was_about_to_open_when_teamd_died_does_not_run_unknown() {
    for backend in super::BACKENDS {
        let house = house(&["held"]);
        house.gate("out/gate");
        let cwd = house.path("").display().to_string();
        let spawn = [
            "spawn",
            "ann",
            "--agent",
            "scripted",
            "--prompt",
            "do talk",
            "--backend",
            backend,
            "--cwd",
            &cwd,
        ];
        let mut asking = house.teamctl_running(spawn);
        house.until("it is about to open", || (!heard(&house, "session/new").is_empty()).then_some(()));
        house.kill_9(house.daemon());
        assert!(!asking.wait().unwrap().success());
        house.start_daemon();
        house.until("its first process ends", || house.those(harness::Whom::Join).is_empty().then_some(()));
        let programs = || Processes::marked(&house.mark()).list();
        house.until("and it with it", || (!programs().concat().contains("acp-agent")).then_some(()));
        house.until("it is put away", || house.member("ann").is_none().then_some(()));
        assert!(heard(&house, "session/prompt").is_empty());
        house.end();
    }
}

/// The first process of an agent that comes next to this point of a debug build stops there.
fn is_to_stop_at(house: &House, point: &str) {
    house.put("out/order", format!("pause teamd-pane {point} 1\n"));
    house.put("out/passed", "");
}

fn stopped(house: &House) -> Option<u32> {
    let passed = house.read("out/passed");
    let pid = passed.lines().find_map(|line| line.strip_prefix("did ")?.parse().ok())?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.starts_with(" T ").then_some(pid)
}

/// It is told to end while it says hello to the next daemon, which has put it away when it tells of that. Without a pane:
/// tmux lets no first process be stopped.
#[test]
fn one_that_ends_before_it_hears_that_it_is_refused_leaves_no_word() {
    let house = house(&["held"]);
    house.gate("out/gate");
    // Daemons get the environment of their panes, and those without a pane that of their daemon.
    house.tmux(["set-environment", "-g", "TEAMD_FAILPOINTS", &house.path("out").display().to_string()]);
    house.kill_9(house.daemon());
    house.start_daemon();
    let spawn = ["spawn", "ann", "--agent", "scripted", "--backend", "in-process"];
    let mut asking = house.teamctl_running(spawn);
    house.until("it is about to open", || (!heard(&house, "session/new").is_empty()).then_some(()));
    is_to_stop_at(&house, "join.hello");
    house.kill_9(house.daemon());
    assert!(!asking.wait().unwrap().success());
    house.start_daemon();
    let join = house.until("it is about to say hello", || stopped(&house));
    let first = Processes::one(join);
    is_to_stop_at(&house, "join.report");
    signal(join, Signal::TERM);
    signal(join, Signal::CONT);
    house.until("it is about to tell of its end", || stopped(&house));
    let roster = state(&house, "roster.json");
    let agents = || serde_json::from_slice::<Value>(&std::fs::read(&roster).ok()?).ok();
    house.until("it is put away", || agents()?["agents"].as_array()?.is_empty().then_some(()));
    signal(join, Signal::CONT);
    assert!(first.ended_within(Duration::from_secs(20)), "{}", house.portrait());
    house.end();
}

/// Whoever asked is answered at once.
#[test]
fn the_spawn_of_one_that_is_ended_while_it_opens_fails() {
    let house = house(&["held"]);
    house.gate("out/gate");
    let cwd = house.path("").display().to_string();
    let spawn = ["spawn", "ann", "--agent", "scripted", "--backend", "in-process", "--cwd", &cwd];
    let asking = house.teamctl_running(spawn);
    house.until("it is about to open", || (!heard(&house, "session/new").is_empty()).then_some(()));
    let join: u32 = house.those(harness::Whom::Join)[0].split(' ').next().unwrap().parse().unwrap();
    std::process::Command::new("kill").arg(join.to_string()).status().unwrap();
    let ran = asking.wait_with_output().unwrap();
    assert!(ran.status.code().is_some_and(|code| code >= 64 && code != 75), "{ran:?}");
    assert!(said(&house, "teammate_terminated").is_empty());
    house.end();
}
