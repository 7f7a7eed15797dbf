//! The example of a tmux.conf, in a real tmux: its status line and its key.

use crate::top::Terminal;
use harness::House;

/// The example as a person would have it, with our programs.
fn configuration(house: &House) {
    let text = include_str!("../../examples/tmux.conf");
    let teamctl = harness::programs().join("teamctl").display().to_string();
    let root = house.root().display().to_string();
    let ours = |text: String, verb: &str| {
        text.replace(&format!("teamctl {verb}"), &format!("{teamctl} --root {root} {verb}"))
    };
    let text = ours(ours(text.to_owned(), "status"), "top");
    let path = house.put("out/tmux.conf", text);
    // An older tmux has no such option.
    let known = house.tmux(["show-options", "-gw"]).contains("allow-passthrough");
    if !known {
        let kept: String = text_without(&house.read("out/tmux.conf"), "allow-passthrough");
        house.put("out/tmux.conf", kept);
    }
    house.tmux(["source-file", &path]);
}

fn text_without(text: &str, word: &str) -> String {
    text.lines().filter(|line| !line.contains(word)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_status_line_shows_who_works_and_who_failed_and_that_teamd_is_down() {
    let house = House::with_team();
    configuration(&house);
    let terminal = Terminal::at(&house, "user");
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    house.teamctl(["spawn", "bob", "--agent", "worker"]).ok();
    house.until("bob is idle", || (house.member("bob")?["activity"] == "idle").then_some(()));
    assert_eq!(house.teamctl(["status", "--format", "tmux"]).ok().trim(), "survey 1/2");
    terminal.until("survey 1/2");
    house.teamctl(["spawn", "cat", "--", "false"]).ok();
    house.until("cat has failed", || house.member("cat").is_none().then_some(()));
    terminal.until("survey 1/2 x1");
    house.kill_9(house.daemon());
    let ran = house.teamctl(["status", "--format", "tmux"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (69, ""));
    terminal.until("teamd down");
    drop(terminal);
    house.start_daemon();
    house.end();
}

#[test]
fn its_key_says_why_there_is_nothing_to_show() {
    let house = House::start();
    configuration(&house);
    let terminal = Terminal::at(&house, "user");
    terminal.press("C-b");
    terminal.press("t");
    terminal.until("cannot find a team: there is none");
    drop(terminal);
    house.end();
}
