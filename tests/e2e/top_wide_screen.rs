//! Checks `teamctl top` on a wide screen: the page beside the lists, the events, the mouse and
//! copying.

use crate::top::TopPane;
use harness::TestEnv;

const WIDE: (u16, u16) = (130, 40);

#[test]
fn output_of_the_selected_member_is_shown_live_in_its_colors() {
    let env = TestEnv::with_team();
    let top = TopPane::open_with_size(&env, WIDE);
    let go = env.path("out/go").display().to_string();
    let program = format!(
        "printf '\\033[31mred\\033[0m one\\n'; until [ -e '{go}' ]; do sleep 0.1; done; echo two; exec sleep 3600"
    );
    env.teamctl(["spawn", "ann", "--", "sh", "-c", &program]).expect_success();
    top.wait_for_text("ann          active");
    top.select("ann");
    top.wait_for_text("|its pane shows:");
    top.wait_for_text("|red one");
    let screen = top.screen_text_with_colors();
    let line = screen.lines().find(|line| line.contains("|\u{1b}") && line.contains("red")).unwrap();
    let colors = ["\u{1b}[31mred", "\u{1b}[38;5;1mred"];
    assert!(colors.iter().any(|red| line.contains(red)), "{line:?}");
    let screen = top.wait_for_text("ann spawned: pid");
    assert!(screen.contains("events, all: teamctl events"), "{screen}");
    env.write_file("out/go", "");
    top.wait_for_text("|two");
    top.press("q");
    top.assert_exited(0);
    env.shut_down();
}

#[test]
fn click_selects_c_copies_and_m_gives_the_mouse_back() {
    let env = TestEnv::with_team();
    let top = TopPane::open_with_size(&env, WIDE);
    for subject in ["read it", "write it up"] {
        env.teamctl(["task", "create", subject]).expect_success();
    }
    let row = "ready   -            write it up";
    let screen = top.wait_for_text(row);
    let line = screen.lines().position(|line| line.contains(row)).unwrap();
    top.type_in(&format!("\u{1b}[<0;5;{}M", line + 1));
    top.wait_for_text("|task 2: write it up");
    top.press("c");
    top.wait_for_text("copied: prefix ] pastes it in tmux");
    assert!(env.tmux(["show-buffer"]).starts_with("task 2: write it up\n"));
    top.press("m");
    top.wait_for_text("mouse off");
    assert_eq!(top.format("#{mouse_any_flag}"), "0");
    top.press("m");
    top.wait_for_text("mouse on");
    assert_eq!(top.format("#{mouse_any_flag}"), "1");
    top.press("q");
    top.assert_exited(0);
    assert_eq!(top.format("#{mouse_any_flag}"), "0");
    env.shut_down();
}

#[test]
fn t_lets_the_person_choose_another_team() {
    let env = TestEnv::with_team();
    let top = TopPane::open(&env);
    env.teamctl(["create", "other"]).expect_success();
    top.press("t");
    top.wait_for_text("Which team?");
    top.press("1");
    top.wait_for_text("other  0 members active");
    top.press("t");
    top.wait_for_text("Which team?");
    top.press("2");
    top.wait_for_text("survey  0 members active");
    top.press("q");
    top.assert_exited(0);
    env.shut_down();
}
