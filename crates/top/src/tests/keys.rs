//! Tests of what each key does.

use super::{example_snapshot, member, message, press_keys, request, state, type_text};
use crate::detail_page_layout::mark_drawn;
use crate::team_snapshot_for_screen::{ListItem, MemberItem, Panel, ScreenSnapshot};
use crate::ui_events_and_effects::{
    ActionResult, ActionStatus, BackgroundAction, Key, MemberOutput, MemberPane, MouseAction, MouseMode,
    UiEffect, UiEvent,
};
use crate::ui_state::{ActiveView, BottomLine, ReadProgress, UiState};
use crate::update_ui_state::update;

/// The arguments of teamctl that the effects run, with standard input after `<`. Other effects are
/// shown as debug text.
fn teamctl_args(effects: &[UiEffect]) -> Vec<String> {
    let command = |effect: &UiEffect| match effect {
        UiEffect::Background(BackgroundAction::RunTeamctl { args, stdin }) if stdin.is_empty() => {
            args.join(" ")
        }
        UiEffect::Background(BackgroundAction::RunTeamctl { args, stdin }) => {
            format!("{} < {stdin}", args.join(" "))
        }
        other => format!("{other:?}"),
    };
    effects.iter().map(command).collect()
}

/// Creates a state in which the page of bob's request is open.
fn state_with_request(details: &str) -> UiState {
    let mut snapshot = example_snapshot();
    snapshot.requests = Some(vec![request("perm-1", "bob", details)]);
    let mut state = state(snapshot, (80, 24));
    press_keys(&mut state, &[Key::Tab, Key::Enter]);
    state
}

/// The effect that reads the output of a member with the pane of the example.
fn capture(name: &str) -> UiEffect {
    let pane = MemberPane::Tmux { socket: "/tmux".into(), pane: "%3".to_owned() };
    UiEffect::Background(BackgroundAction::CapturePane { name: name.to_owned(), pane })
}

fn result_text(state: &UiState) -> &str {
    state.result.as_ref().map_or("", |result| &result.text)
}

#[test]
fn message_is_sent_to_the_selected_member_on_stdin() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::Down]);
    assert!(type_text(&mut state, "sqKy?").is_empty(), "typed text is not handled as keys");
    press_keys(&mut state, &[Key::Backspace]);
    update(&mut state, UiEvent::Paste("\nK\u{1b}".to_owned()));
    assert_eq!(teamctl_args(&press_keys(&mut state, &[Key::Enter])), ["send -- ann - < qKy K"]);
    press_keys(&mut state, &[Key::Tab, Key::Tab, Key::Tab, Key::Char('s'), Key::Char('x')]);
    assert_eq!(
        teamctl_args(&press_keys(&mut state, &[Key::Enter])),
        ["send -- bob - < x"],
        "the recipient is the sender of the selected message"
    );
    press_keys(&mut state, &[Key::Char('s')]);
    assert!(press_keys(&mut state, &[Key::Enter]).is_empty(), "an empty message is not sent");
    assert_eq!(state.bottom_line, BottomLine::KeyHelp);
}

#[test]
fn paste_without_a_prompt_is_ignored() {
    let mut state = state(example_snapshot(), (80, 24));
    let before = state.clone();
    assert!(update(&mut state, UiEvent::Paste("KKq".to_owned())).is_empty());
    assert_eq!(state, before);
}

#[test]
fn kill_needs_two_keys_and_keeps_its_target() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::Down, Key::Char('K')]);
    let mut next = example_snapshot();
    next.members.remove(0);
    update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
    assert_eq!(teamctl_args(&press_keys(&mut state, &[Key::Char('K')])), ["kill -- ann"]);
    for other in [Key::Escape, Key::Enter, Key::Char('k'), Key::Char('q')] {
        assert!(press_keys(&mut state, &[Key::Char('K'), other]).is_empty(), "{other:?}");
        assert_eq!(state.bottom_line, BottomLine::KeyHelp);
    }
}

#[test]
fn sender_of_the_selected_message_stays_the_target() {
    for (key, line) in [('K', "kill bob:"), ('x', "ask bob to shut down")] {
        let mut state = state(example_snapshot(), (80, 24));
        press_keys(&mut state, &[Key::BackTab, Key::Char(key)]);
        let mut next = example_snapshot();
        next.messages.push(message(4, "ann", "bob", "the newest"));
        update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
        assert!(super::screens::screen_text(&state).contains(line), "{line}");
        let confirm = if key == 'K' { Key::Char('K') } else { Key::Enter };
        assert!(teamctl_args(&press_keys(&mut state, &[confirm]))[0].ends_with(" -- bob"));
    }
}

#[test]
fn shutdown_reason_is_optional() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::Down]);
    assert_eq!(
        teamctl_args(&press_keys(&mut state, &[Key::Char('x'), Key::Enter])),
        ["shutdown --no-wait -- ann"]
    );
    press_keys(&mut state, &[Key::Char('x'), Key::Char('-')]);
    assert_eq!(
        teamctl_args(&press_keys(&mut state, &[Key::Enter])),
        ["shutdown --no-wait --reason=- -- ann < -"]
    );
    assert!(press_keys(&mut state, &[Key::Char('x'), Key::Escape]).is_empty());
}

#[test]
fn short_request_is_answered_with_one_key() {
    let mut approved = state_with_request("asks to use Bash");
    assert_eq!(teamctl_args(&type_text(&mut approved, "y")), ["approve -- perm-1"]);
    assert_eq!(approved.view, ActiveView::Lists);
    let mut denied_with_reason = state_with_request("asks to use Bash");
    assert!(type_text(&mut denied_with_reason, "nnot now").is_empty());
    assert_eq!(
        teamctl_args(&press_keys(&mut denied_with_reason, &[Key::Enter])),
        ["deny --reason=- -- perm-1 < not now"]
    );
    let mut without_reason = state_with_request("asks to use Bash");
    let args = teamctl_args(&press_keys(&mut without_reason, &[Key::Char('n'), Key::Enter]));
    assert_eq!(args, ["deny --reason=- -- perm-1 < a person denied it"]);
}

#[test]
fn long_request_is_answered_only_after_its_last_line_was_drawn() {
    let details = (0..60).map(|n| format!("line {n}\n")).collect::<String>();
    let mut state = state_with_request(&details);
    for _ in 0..2 {
        assert!(type_text(&mut state, "y").is_empty());
        assert_eq!(result_text(&state), "read it to its end first");
        press_keys(&mut state, &[Key::PageDown]);
    }
    assert_eq!(teamctl_args(&type_text(&mut state, "y")), ["approve -- perm-1"]);
    let mut not_shown = state_with_request(&details);
    update(&mut not_shown, UiEvent::Key(Key::End));
    assert!(
        update(&mut not_shown, UiEvent::Key(Key::Char('y'))).is_empty(),
        "the last line was not drawn yet"
    );
    let mut small = state_with_request("short");
    small.size = (30, 5);
    update(&mut small, UiEvent::SnapshotRead(Box::new(example_snapshot())));
    assert!(
        press_keys(&mut small, &[Key::Char('y')]).is_empty(),
        "a screen that is too small does not show the request"
    );
}

#[test]
fn changed_or_closed_request_is_not_answered() {
    let mut state = state_with_request("ls");
    let mut next = example_snapshot();
    next.requests = Some(vec![request("perm-1", "bob", "rm -r /")]);
    update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
    assert!(update(&mut state, UiEvent::Key(Key::Char('y'))).is_empty());
    mark_drawn(&mut state);
    assert_eq!(
        teamctl_args(&type_text(&mut state, "y")),
        ["approve -- perm-1"],
        "the changed request was drawn"
    );
    let mut closed = state_with_request("ls");
    update(
        &mut closed,
        UiEvent::SnapshotRead(Box::new(ScreenSnapshot { requests: Some(vec![]), ..example_snapshot() })),
    );
    assert!(
        type_text(&mut closed, "y").is_empty()
            && result_text(&closed) == "cannot answer: the request is no longer open"
    );
    let mut same_ids = state_with_request("ls");
    let requests = Some(vec![request("perm-1", "bob", "ls"), request("perm-1", "eve", "rm -r /")]);
    update(&mut same_ids, UiEvent::SnapshotRead(Box::new(ScreenSnapshot { requests, ..example_snapshot() })));
    assert!(type_text(&mut same_ids, "y").is_empty() && result_text(&same_ids).contains("the same id"));
}

#[test]
fn only_requests_can_be_answered() {
    let mut state = state(example_snapshot(), (80, 24));
    assert!(type_text(&mut state, "yn").is_empty());
    press_keys(&mut state, &[Key::Down, Key::Enter]);
    assert!(type_text(&mut state, "yn").is_empty() && state.bottom_line == BottomLine::KeyHelp);
}

#[test]
fn attach_needs_a_pane() {
    let mut state = state(example_snapshot(), (80, 24));
    assert!(type_text(&mut state, "a").is_empty() && result_text(&state).contains("no pane"));
    press_keys(&mut state, &[Key::Down]);
    assert_eq!(
        type_text(&mut state, "a"),
        [UiEffect::Background(BackgroundAction::Attach { name: "ann".to_owned() })]
    );
}

#[test]
fn member_page_shows_its_pane() {
    let mut state = state(example_snapshot(), (80, 24));
    let effects = press_keys(&mut state, &[Key::Down, Key::Enter]);
    let name = || "ann".to_owned();
    assert_eq!(effects, [capture("ann"), UiEffect::Background(BackgroundAction::Diagnose { name: name() })]);
    update(&mut state, UiEvent::Diagnosed { name: name(), text: "it works".to_owned() });
    let output = |text: &str| MemberOutput::Screen(text.to_owned());
    update(&mut state, UiEvent::PaneCaptured { name: "bob".to_owned(), output: output("not hers") });
    update(&mut state, UiEvent::PaneCaptured { name: "ann".to_owned(), output: output("hers") });
    let page = state.page.as_ref().unwrap();
    assert_eq!((page.diagnosis.as_str(), &page.output), ("it works", &Some(output("hers"))));
    assert_eq!(page.progress, ReadProgress::Complete);
}

#[test]
fn wide_screen_shows_the_selected_item_and_follows_it() {
    let mut state = state(example_snapshot(), (120, 40));
    let key_of_page = |state: &UiState| state.page.as_ref().map(|page| page.key.clone());
    assert_eq!(key_of_page(&state).as_deref(), Some("team-lead"));
    assert_eq!(press_keys(&mut state, &[Key::Down]), [capture("ann")]);
    let mut next = example_snapshot();
    next.members[1].state = "idle".to_owned();
    let effects = update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
    assert_eq!(effects, [capture("ann")], "each snapshot reads the output again");
    assert!(state.page.as_ref().unwrap().text.starts_with("ann: idle"));
    press_keys(&mut state, &[Key::Tab]);
    assert_eq!(key_of_page(&state).as_deref(), Some("bob perm-1"));
    update(&mut state, UiEvent::Resized(119, 40));
    assert_eq!(key_of_page(&state), None);
}

#[test]
fn only_panes_of_members_in_tmux_are_read_from_tmux() {
    for (name, pane, expected) in [
        ("team-lead", Some("%1"), MemberPane::Missing),
        ("ann", Some("w0t1p0:8F"), MemberPane::Other),
        ("ann", None, MemberPane::Missing),
    ] {
        let mut snapshot = example_snapshot();
        snapshot.members =
            vec![MemberItem { pane: pane.map(str::to_owned), ..member(name, "", "active", "", "") }];
        let mut state = state(snapshot, (80, 24));
        let effects = press_keys(&mut state, &[Key::Enter]);
        let capture = BackgroundAction::CapturePane { name: name.to_owned(), pane: expected };
        assert_eq!(effects[0], UiEffect::Background(capture), "{name} {pane:?}");
    }
}

#[test]
fn request_beside_the_lists_is_answered_only_on_its_page() {
    let mut state = state(example_snapshot(), (120, 40));
    press_keys(&mut state, &[Key::Tab]);
    assert!(type_text(&mut state, "yn").is_empty(), "the selection may have moved to another request");
    press_keys(&mut state, &[Key::Enter]);
    let mut next = example_snapshot();
    next.requests.as_mut().unwrap().insert(0, request("perm-0", "ann", "asks to use rm"));
    update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
    assert_eq!(teamctl_args(&type_text(&mut state, "y")), ["approve -- perm-1"]);
}

#[test]
fn selection_stays_on_a_member_or_moves_to_the_next() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::Down, Key::Down]);
    let mut next = example_snapshot();
    next.members.insert(0, member("abe", "", "idle", "", ""));
    update(&mut state, UiEvent::SnapshotRead(Box::new(next.clone())));
    assert_eq!(state.selected_member().as_deref(), Some("bob"));
    next.members.retain(|member| member.name != "bob");
    update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
    assert_eq!(state.selected_member().as_deref(), Some("carla"));
}

#[test]
fn selection_follows_the_newest_message_unless_moved() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::BackTab]);
    let selected_key = |state: &UiState| state.selected_item().map(ListItem::key);
    let mut next = example_snapshot();
    next.messages.push(message(4, "ann", "bob", "the fourth"));
    update(&mut state, UiEvent::SnapshotRead(Box::new(next.clone())));
    assert_eq!(selected_key(&state).as_deref(), Some("4"));
    press_keys(&mut state, &[Key::Up]);
    next.messages.push(message(5, "ann", "bob", "the fifth"));
    update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
    assert_eq!(selected_key(&state).as_deref(), Some("3"));
    press_keys(&mut state, &[Key::End]);
    assert_eq!(selected_key(&state).as_deref(), Some("5"));
}

#[test]
fn filter_applies_until_cleared() {
    let mut state = state(example_snapshot(), (80, 24));
    type_text(&mut state, "fAN");
    assert_eq!(state.items(Panel::Members).len(), 1);
    press_keys(&mut state, &[Key::Enter]);
    assert_eq!((state.items(Panel::Members).len(), &state.bottom_line), (1, &BottomLine::KeyHelp));
    press_keys(&mut state, &[Key::Escape]);
    assert_eq!(state.items(Panel::Members).len(), 4);
}

#[test]
fn quit_suspend_and_continue_cause_effects() {
    let mut state = state(example_snapshot(), (80, 24));
    assert_eq!(type_text(&mut state, "q"), [UiEffect::Quit(0)]);
    assert_eq!(press_keys(&mut state, &[Key::Control('c')]), [UiEffect::Quit(0)]);
    assert_eq!(update(&mut state, UiEvent::Terminate(143)), [UiEffect::Quit(143)]);
    assert_eq!(update(&mut state, UiEvent::SuspendRequested), [UiEffect::Suspend]);
    assert_eq!(update(&mut state, UiEvent::Continued), [UiEffect::Redraw]);
    press_keys(&mut state, &[Key::Char('s')]);
    assert_eq!(press_keys(&mut state, &[Key::Control('c')]), [UiEffect::Quit(0)]);
}

#[test]
fn unchanged_snapshot_keeps_the_state() {
    let mut state = state(example_snapshot(), (80, 24));
    let before = state.clone();
    update(&mut state, UiEvent::SnapshotRead(Box::new(example_snapshot())));
    assert_eq!(state, before, "an unchanged state is not drawn");
    let failed = crate::ui_events_and_effects::ActionResult::failure("x");
    assert_eq!(failed.status, ActionStatus::Failed);
}

#[test]
fn lines_covered_by_a_result_count_as_unread() {
    let mut state = state_with_request(&(0..20).map(|n| format!("line {n}\n")).collect::<String>());
    state.page.as_mut().unwrap().progress = ReadProgress::UpToLine(0);
    update(&mut state, UiEvent::ActionFinished(ActionResult::failure("a long refusal ".repeat(20))));
    mark_drawn(&mut state);
    assert!(update(&mut state, UiEvent::Key(Key::Char('y'))).is_empty(), "the result covers the last lines");
}

#[test]
fn request_with_skipped_lines_is_not_answered() {
    let mut state = state_with_request(&(0..90).map(|n| format!("line {n}\n")).collect::<String>());
    press_keys(&mut state, &[Key::End]);
    assert!(press_keys(&mut state, &[Key::Char('y')]).is_empty());
    press_keys(&mut state, &[Key::Home, Key::PageDown, Key::PageDown, Key::PageDown, Key::PageDown]);
    assert_eq!(teamctl_args(&press_keys(&mut state, &[Key::Char('y')])), ["approve -- perm-1"]);
}

#[test]
fn initial_selection_is_kept_when_a_member_is_added() {
    let mut state = state(example_snapshot(), (80, 24));
    let mut next = example_snapshot();
    let first = next.members[0].name.clone();
    update(&mut state, UiEvent::SnapshotRead(Box::new(example_snapshot())));
    next.members.insert(0, member("abe", "", "idle", "", ""));
    update(&mut state, UiEvent::SnapshotRead(Box::new(next)));
    assert_eq!(state.selected_member(), Some(first));
}

#[test]
fn keys_are_ignored_on_a_too_small_screen() {
    let mut state = state(example_snapshot(), (30, 5));
    let keys = [Key::Char('K'), Key::Char('K'), Key::Char('x'), Key::Enter, Key::Char('a'), Key::Char('s')];
    assert!(keys.into_iter().all(|key| update(&mut state, UiEvent::Key(key)).is_empty()));
    assert_eq!(update(&mut state, UiEvent::Key(Key::Char('q'))), [UiEffect::Quit(0)]);
}

#[test]
fn search_selects_the_next_match_in_all_panels() {
    let mut state = state(example_snapshot(), (80, 24));
    let selected = |state: &UiState| (state.panel, state.selected_item().map(ListItem::key).unwrap());
    type_text(&mut state, "/MAP");
    press_keys(&mut state, &[Key::Enter]);
    assert_eq!(selected(&state), (Panel::Tasks, "4".to_owned()), "the page of task 4 names the map");
    type_text(&mut state, "n");
    assert_eq!(selected(&state), (Panel::Tasks, "3".to_owned()));
    type_text(&mut state, "n");
    assert_eq!(selected(&state), (Panel::Tasks, "4".to_owned()), "the search starts again");
    type_text(&mut state, "/which chapter");
    press_keys(&mut state, &[Key::Enter]);
    assert_eq!(selected(&state), (Panel::Messages, "3".to_owned()));
    type_text(&mut state, "/nowhere");
    press_keys(&mut state, &[Key::Enter]);
    assert_eq!((selected(&state).0, result_text(&state)), (Panel::Messages, "no item contains it"));
    type_text(&mut state, "/");
    press_keys(&mut state, &[Key::Enter]);
    assert_eq!(result_text(&state), "nothing to find: / asks for it");
}

#[test]
fn copy_takes_the_whole_text_without_control_characters() {
    let mut narrow = state(example_snapshot(), (80, 24));
    press_keys(&mut narrow, &[Key::BackTab]);
    let text = "from bob to ann, 14:03\n\nwhich chapter do you read?, in full";
    assert_eq!(type_text(&mut narrow, "c"), [UiEffect::Copy(text.to_owned())]);
    assert_eq!(result_text(&narrow), "copied 3 lines");
    let mut wide = state(example_snapshot(), (120, 40));
    press_keys(&mut wide, &[Key::Down]);
    let output = MemberOutput::Screen("\u{1b}[31m$ ls\u{1b}[0m  \n\u{7}a\n\n".to_owned());
    update(&mut wide, UiEvent::PaneCaptured { name: "ann".to_owned(), output });
    let [UiEffect::Copy(text)] = &type_text(&mut wide, "c")[..] else { panic!() };
    assert!(text.starts_with("ann: active") && text.ends_with("pane %3\n\n$ ls\n\\u{7}a"), "{text}");
    let mut empty = state(ScreenSnapshot::default(), (80, 24));
    assert!(type_text(&mut empty, "c").is_empty() && result_text(&empty) == "nothing is selected");
}

#[test]
fn click_selects_and_wheel_scrolls() {
    let mut state = state(example_snapshot(), (120, 40));
    let mouse = |state: &mut UiState, action, at| update(state, UiEvent::Mouse(action, at));
    assert_eq!(mouse(&mut state, MouseAction::Click, (5, 4)), [capture("bob")]);
    assert_eq!(state.selected_member().as_deref(), Some("bob"));
    mouse(&mut state, MouseAction::Click, (5, 6));
    assert_eq!(state.panel, Panel::Requests, "a title selects its panel");
    mouse(&mut state, MouseAction::WheelDown, (5, 10));
    assert_eq!(state.selected_item().map(ListItem::key).as_deref(), Some("4"));
    mouse(&mut state, MouseAction::WheelUp, (5, 10));
    assert_eq!(state.selected_item().map(ListItem::key).as_deref(), Some("2"));
    mouse(&mut state, MouseAction::Click, (100, 20));
    assert_eq!(state.view, ActiveView::Details);
    mouse(&mut state, MouseAction::Click, (5, 3));
    assert_eq!((state.view, state.selected_member().as_deref()), (ActiveView::Lists, Some("ann")));
    let lines = (0..90).map(|n| format!("line {n}\n")).collect();
    update(&mut state, UiEvent::PaneCaptured { name: "ann".to_owned(), output: MemberOutput::Log(lines) });
    mouse(&mut state, MouseAction::WheelDown, (100, 20));
    assert_eq!((state.view, state.page.as_ref().map(|page| page.first_line)), (ActiveView::Details, Some(3)));
    let before = state.clone();
    mouse(&mut state, MouseAction::Click, (100, 33));
    mouse(&mut state, MouseAction::Click, (500, 500));
    assert_eq!(state, before, "nothing is selected outside of lists and page");
}

#[test]
fn mouse_is_ignored_while_a_question_is_open_and_turned_off_by_a_key() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::Down, Key::Char('K')]);
    assert!(update(&mut state, UiEvent::Mouse(MouseAction::Click, (5, 4))).is_empty());
    assert_eq!(teamctl_args(&press_keys(&mut state, &[Key::Char('K')])), ["kill -- ann"]);
    press_keys(&mut state, &[Key::Char('?')]);
    update(&mut state, UiEvent::Mouse(MouseAction::Click, (5, 4)));
    assert_eq!(state.view, ActiveView::Help);
    press_keys(&mut state, &[Key::Escape]);
    assert_eq!(type_text(&mut state, "m"), [UiEffect::SetMouse(MouseMode::Off)]);
    assert_eq!(type_text(&mut state, "m"), [UiEffect::SetMouse(MouseMode::On)]);
}
