//! What a turn finds around it in a pane, and what the pane shows of it.

use super::{Play, house, task, worker};
use harness::House;

#[test]
fn a_turns_process_finds_a_clean_world() {
    let house = house();
    let dump = format!("{} dump out/dump; cp /proc/self/status out/signals", house.agent());
    task(&house, "look", &dump);
    let mut play = Play::in_a_pane(house, &worker());
    play.idle(1);
    let dump = play.house.read("out/dump");
    let descriptors: Vec<&str> = dump.lines().filter(|line| line.starts_with("fd ")).collect();
    let others = descriptors.iter().filter(|line| {
        !line.contains("/dev/pts/") && !line.contains("/dev/null") && !line.contains("/proc/")
    });
    assert_eq!((others.count(), descriptors.len()), (0, 4), "{descriptors:#?}");
    assert!(!dump.contains("TEAMD_WAKE_FD"), "the line is not for it: {dump}");
    assert!(dump.contains("env TMUX_PANE=%") && dump.contains("env TASK_ID=1\n"), "{dump}");
    let status = play.house.read("out/signals");
    for set in ["SigBlk:", "SigIgn:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
        assert_eq!(u64::from_str_radix(line.trim(), 16).unwrap() & 0x7fff_ffff, 0, "{set} {line}");
    }
    play.end().end();
}

#[test]
fn a_turn_has_the_size_of_its_pane_and_what_it_prints_is_shown_there() {
    let house = house();
    task(&house, "size", "stty size <&2; printf '\\033[31mred'");
    let mut play = Play::in_a_pane(house, &worker());
    play.idle(1);
    let size = |play: &Play| play.house.tmux(["display", "-p", "-t", "ann", "#{pane_height} #{pane_width}"]);
    let expected = format!("{}\r\n\u{1b}[31mred\u{1b}[0m\r\nTask 1 is done: size\r\nidle\r\n", size(&play));
    play.house.until("it is shown", || play.pane().contains(&expected).then_some(()));
    play.house.tmux(["resize-window", "-t", "ann", "-x", "90", "-y", "20"]);
    task(&play.house, "size", "until [ \"$(stty size <&2)\" = '20 90' ]; do sleep 0.05; done");
    play.wake();
    play.idle(2);
    assert_eq!(size(&play), "20 90");
    play.end().end();
}

#[test]
fn what_a_turn_leaves_in_the_background_goes_on_writing_between_the_turns() {
    let house = house();
    house.gate("out/go");
    task(&house, "serve", "(read line <out/go; echo the server says $line; touch out/said) &");
    let mut play = Play::start(house, &worker(), None);
    play.idle(1);
    play.house.open_gate("out/go");
    play.house.until("it is shown", || play.pane().contains("the server says go\n").then_some(()));
    play.end().end();
}

#[test]
fn what_a_pane_shows_is_recorded_in_a_file_of_bounded_size() {
    let house = House::empty();
    let path = house.path("state/logs/ann.log");
    let script = format!("yes 0123456789abcde | head -c 23000000 | teamctl record {}", path.display());
    let status = house.command("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success());
    let size = |name: &str| house.path(name).metadata().unwrap().len();
    assert!(size("state/logs/ann.log") <= 10 << 20 && size("state/logs/ann.log.1") <= 10 << 20);
    assert!(house.read("state/logs/ann.log").ends_with("0123456789abcde\n"));
    assert_eq!(std::fs::read_dir(house.path("state/logs")).unwrap().count(), 2);
    house.end();
}
