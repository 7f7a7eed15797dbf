//! Checks `teamctl replay`: the film of a record in tmux, as text and as an asciicast.

mod check;

use crate::top::TopPane;
use harness::TestEnv;
use serde_json::{Value, json};
use std::time::Duration;

/// The record of a team with two members, two tasks, a request and a failure. It is 95 s long.
const RECORD: &str = include_str!("../../crates/top/src/tests/survey_record.jsonl");

/// The record as `teamctl replay --text` prints it.
const TEXT: &str = "\
0:00:00.000  the record of survey begins at 2026-11-28 14:00:00 UTC, 0:01:35 long
0:00:00.100  survey created
0:00:01.000  ann spawned: pid 100, pane %3
0:00:02.000  bob spawned: pid 101, pane %4
0:00:03.000  task 1 created: count the lines
0:00:03.500  task 2 created: write it up
0:00:04.000  task 1 started by ann: count the lines
0:00:04.100  ann active: task 1: count the lines
0:00:10.000  team-lead -> bob: Which files did you read? …
0:00:10.100  bob active: message from team-lead
0:00:12.000  bob -> team-lead: asks to use Bash, request perm-1: list the files
0:00:12.000  bob asks to use Bash: list the files, and waits for the answer: perm-1
0:01:20.000  bob was approved by lead: perm-1
0:01:25.000  task 1 completed by ann: count the lines
0:01:25.100  ann idle
0:01:25.200  ann -> team-lead: done …
0:01:30.100  bob ended, failed: exit 1
";

fn write_record(env: &TestEnv) -> String {
    env.write_file("survey.jsonl", RECORD)
}

#[test]
fn film_plays_jumps_and_quits() {
    for size in [(80, 24), (200, 50)] {
        let env = TestEnv::new();
        let film = TopPane::start_command(&env, size, &format!("replay '{}'", write_record(&env)));
        film.wait_for_text("playing 0:0");
        film.press("Space");
        film.wait_for_text("paused 0:0");
        film.press("Home");
        film.wait_for_text("paused 0:00:00");
        film.press("]");
        let screen = film.wait_for_text("paused 0:00:10 of 0:01:35, 1x ");
        assert!(screen.contains("team-lead -> bob: Which files did you read?"), "{screen}");
        film.press("}");
        let screen = film.wait_for_text("paused 0:01:30 of 0:01:35, 1x ");
        assert!(screen.contains(" bob          failed ") && screen.contains("done    ann "), "{screen}");
        film.press("(");
        let screen = film.wait_for_text("paused 0:00:12 of 0:01:35, 1x ");
        assert!(screen.contains("active!asks") && screen.contains("1 request waits"), "{screen}");
        film.press("s");
        film.wait_for_text("this is a film: no key acts on a team");
        film.press("End");
        film.wait_for_text("at its end 0:01:35 of 0:01:35, 1x ");
        film.press("q");
        film.assert_exited(0);
        env.shut_down();
    }
}

#[test]
fn film_plays_by_itself_and_draws_nothing_while_paused() {
    let env = TestEnv::new();
    let command = format!("replay '{}' --speed 32", write_record(&env));
    let film = TopPane::start_command(&env, (80, 24), &command);
    film.wait_for_text("at its end 0:01:35 of 0:01:35, 32x ");
    film.press("[");
    film.wait_for_text("paused 0:01:25 of 0:01:35, 32x ");
    let drawn = env.write_file("out/drawn", "");
    env.tmux(["pipe-pane", "-t", &film.pane, &format!("cat >> '{drawn}'")]);
    env.wait_until_quiet(Duration::from_millis(500));
    assert_eq!(env.read("out/drawn"), "");
    film.press("-");
    film.wait_for_text("paused 0:01:25 of 0:01:35, 16x ");
    film.press("q");
    film.assert_exited(0);
    env.shut_down();
}

#[test]
fn record_is_printed_without_a_terminal() {
    let env = TestEnv::new();
    let file = write_record(&env);
    assert_eq!(env.teamctl(["replay", &file]).expect_success(), TEXT);
    assert_eq!(env.teamctl(["replay", &file, "--text"]).expect_success(), TEXT);
    let output = env.teamctl(["replay", &file, "--json"]).expect_success();
    let objects: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), TEXT.lines().count());
    assert_eq!(objects[2], json!({"ok": true, "offset_ms": 1000, "text": "ann spawned: pid 100, pane %3"}));
    env.shut_down();
}

#[test]
fn asciicast_is_the_same_each_time() {
    let env = TestEnv::new();
    let file = write_record(&env);
    let cast = |args: &[&str]| {
        let args = [&["replay", &file, "--asciinema", "-"], args].concat();
        env.teamctl_with(&args, &[]).expect_success()
    };
    let first = cast(&["--size", "80x24"]);
    assert_eq!(first, cast(&["--size", "80x24"]));
    let lines: Vec<Value> = first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["version"], &lines[0]["width"], &lines[0]["height"]),
        (&json!(2), &json!(80), &json!(24))
    );
    let times: Vec<f64> = lines[1..].iter().map(|event| event[0].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    // Of the 95 s of the record, two pauses of 6 s and 68 s last 5 s each.
    assert!((31.0..31.5).contains(times.last().unwrap()), "{times:?}");
    assert!(lines[1..].iter().all(|event| event[1] == "o" && event[2].is_string()));
    let path = env.path("out/survey.cast").display().to_string();
    let args = ["replay", &file, "--size", "80x24", "--asciinema", &path];
    env.teamctl(args).expect_success();
    assert_eq!(env.read("out/survey.cast"), first);
    let error = env.teamctl(args).expect_failure(73);
    assert!(error.contains("survey.cast: File exists") && error.contains("teamctl replay"), "{error}");
    let in_full: Value =
        serde_json::from_str(cast(&["--keep-pauses", "--speed", "2"]).lines().last().unwrap()).unwrap();
    assert!((47.0..48.0).contains(&in_full[0].as_f64().unwrap()), "{}", in_full[0]);
    for (option, value) in [("--size", "12x4"), ("--size", "wide"), ("--speed", "3")] {
        let output = env.teamctl(["replay", &file, "--asciinema", "-", option, value]);
        assert!(output.code == 64 && output.stderr.contains(value), "{output:?}");
    }
    env.shut_down();
}

#[test]
fn files_that_are_no_record_are_refused() {
    let env = TestEnv::new();
    let newer = r#"{"time":"2026-11-28T14:00:00.000Z","kind":"start","version":2,"team":"survey"}"#;
    let cases = [
        ("empty", "", 65, "cannot play EMPTY: it is empty"),
        ("text", "hello\n", 65, "its first line is not a start line"),
        ("newer", newer, 78, "it has version 2, and this release plays version 1"),
    ];
    for (name, text, code, part) in cases {
        let file = env.write_file(name, text);
        let part = part.replace("EMPTY", &file);
        let error = env.teamctl(["replay", &file]).expect_failure(code);
        assert!(error.contains(&part) && error.contains("\n  ") && error.contains("teamctl "), "{error}");
    }
    let error = env.teamctl(["replay", "/nowhere.jsonl"]).expect_failure(72);
    assert!(error.contains("cannot play /nowhere.jsonl: No such file"), "{error}");
    assert!(error.contains("record a team with: teamctl create TEAM --record"), "{error}");
    env.shut_down();
}

#[test]
fn cut_record_is_played_and_the_cut_is_named() {
    let env = TestEnv::new();
    let file = env.write_file("cut.jsonl", &RECORD[..RECORD.len() - 30]);
    let output = env.teamctl(["replay", &file]);
    assert_eq!(output.stdout, TEXT.replace("0:01:35 long", "0:01:30 long"));
    assert!(
        output.stderr.contains("the record ends within a line, because its teamd was killed"),
        "{output:?}"
    );
    assert_eq!(output.code, 0);
    let film = TopPane::start_command(&env, (80, 24), &format!("replay '{file}'"));
    film.wait_for_text("the record ends within a line, because its teamd was killed");
    film.press("End");
    film.wait_for_text("at its end 0:01:30 of 0:01:30");
    film.press("q");
    film.assert_exited(0);
    env.shut_down();
}

#[test]
fn panes_show_the_output_of_each_member_and_end_with_the_film() {
    let env = TestEnv::new();
    let command = format!("replay '{}' --panes", write_record(&env));
    let error = env
        .teamctl(["replay", &env.path("survey.jsonl").display().to_string(), "--panes"])
        .expect_failure(76);
    assert!(error.contains("this is not inside tmux") && error.contains("teamctl replay FILE"), "{error}");
    let shell = TopPane::start_command(&env, (200, 50), &command);
    let panes = || env.tmux(["list-panes", "-s", "-t", "top", "-F", "#{pane_title} #{pane_id}"]);
    let pane = |name: &str| {
        let panes = panes();
        panes.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
    };
    let (ann, bob) = env.wait_until("both panes are open", || pane("ann").zip(pane("bob")));
    let screen = |pane: &str| env.tmux(["capture-pane", "-p", "-t", pane]);
    let film = env.tmux(["list-panes", "-t", &ann, "-F", "#{pane_id}"]).lines().next().unwrap().to_owned();
    let wait_for = |pane: &str, part: &str| {
        env.wait_until(&format!("the pane shows {part:?}"), || screen(pane).contains(part).then_some(()));
    };
    wait_for(&film, "playing 0:0");
    env.tmux(["send-keys", "-t", &film, "End"]);
    wait_for(&ann, "12 a.md");
    wait_for(&bob, "ls: cannot read");
    env.tmux(["send-keys", "-t", &film, "["]);
    env.wait_until("the output of bob is gone", || (!screen(&bob).contains("ls: cannot read")).then_some(()));
    wait_for(&ann, "12 a.md");
    env.tmux(["send-keys", "-t", &film, "q"]);
    env.wait_until("all panes of the film have ended", || (panes().lines().count() == 1).then_some(()));
    shell.wait_for_text("left 0");
    env.shut_down();
}
