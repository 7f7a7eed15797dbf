//! What each key does.

use super::{letter, member, press, request, state, survey, text};
use crate::event::{Effect, Event, Key, Outcome, Pane, Told};
use crate::sight::{Item, Part, Sight};
use crate::state::{Line, Read, State, View};
use crate::update::update;

fn words(effects: &[Effect]) -> Vec<String> {
    let of = |effect: &Effect| match effect {
        Effect::Verb { words, input } if input.is_empty() => words.join(" "),
        Effect::Verb { words, input } => format!("{} < {input}", words.join(" ")),
        other => format!("{other:?}"),
    };
    effects.iter().map(of).collect()
}

/// With bob's request open.
fn asked(whole: &str) -> State {
    let mut sight = survey();
    sight.requests = Some(vec![request("perm-1", "bob", whole)]);
    let mut state = state(sight, (80, 24));
    press(&mut state, &[Key::Tab, Key::Enter]);
    state
}

fn told(state: &State) -> &str {
    state.told.as_ref().map_or("", |told| &told.text)
}

#[test]
fn a_message_goes_to_whoever_is_chosen_over_standard_input() {
    let mut state = state(survey(), (80, 24));
    press(&mut state, &[Key::Down]);
    assert!(text(&mut state, "sqKy?").is_empty(), "what is typed is no key");
    press(&mut state, &[Key::Backspace]);
    update(&mut state, Event::Paste("\nK\u{1b}".to_owned()));
    assert_eq!(words(&press(&mut state, &[Key::Enter])), ["send -- ann - < qKy K"]);
    press(&mut state, &[Key::Tab, Key::Tab, Key::Tab, Key::Char('s'), Key::Char('x')]);
    assert_eq!(words(&press(&mut state, &[Key::Enter])), ["send -- bob - < x"], "the sender of that message");
    press(&mut state, &[Key::Char('s')]);
    assert!(press(&mut state, &[Key::Enter]).is_empty(), "nothing is not sent");
    assert_eq!(state.line, Line::Keys);
}

#[test]
fn what_is_pasted_without_a_prompt_is_nothing() {
    let mut state = state(survey(), (80, 24));
    let before = state.clone();
    assert!(update(&mut state, Event::Paste("KKq".to_owned())).is_empty());
    assert_eq!(state, before);
}

#[test]
fn a_kill_is_asked_for_twice_and_means_who_was_chosen_at_first() {
    let mut state = state(survey(), (80, 24));
    press(&mut state, &[Key::Down, Key::Char('K')]);
    let mut without = survey();
    without.members.remove(0);
    update(&mut state, Event::Seen(Box::new(without)));
    assert_eq!(words(&press(&mut state, &[Key::Char('K')])), ["kill -- ann"]);
    for other in [Key::Escape, Key::Enter, Key::Char('k'), Key::Char('q')] {
        assert!(press(&mut state, &[Key::Char('K'), other]).is_empty(), "{other:?}");
        assert_eq!(state.line, Line::Keys);
    }
}

#[test]
fn whoever_wrote_the_newest_message_is_named_and_meant_though_a_newer_one_comes() {
    for (key, line) in [('K', "kill bob:"), ('x', "ask bob to shut down")] {
        let mut state = state(survey(), (80, 24));
        press(&mut state, &[Key::BackTab, Key::Char(key)]);
        let mut more = survey();
        more.messages.push(letter(4, "ann", "bob", "the newest"));
        update(&mut state, Event::Seen(Box::new(more)));
        assert!(super::screens::shown(&state).contains(line), "{line}");
        let does = if key == 'K' { Key::Char('K') } else { Key::Enter };
        assert!(words(&press(&mut state, &[does]))[0].ends_with(" -- bob"));
    }
}

#[test]
fn a_shutdown_is_asked_for_with_a_reason_or_none() {
    let mut state = state(survey(), (80, 24));
    press(&mut state, &[Key::Down]);
    assert_eq!(words(&press(&mut state, &[Key::Char('x'), Key::Enter])), ["shutdown --no-wait -- ann"]);
    press(&mut state, &[Key::Char('x'), Key::Char('-')]);
    assert_eq!(words(&press(&mut state, &[Key::Enter])), ["shutdown --no-wait --reason=- -- ann < -"]);
    assert!(press(&mut state, &[Key::Char('x'), Key::Escape]).is_empty());
}

#[test]
fn a_short_request_is_answered_with_one_key() {
    let mut yes = asked("asks to use Bash");
    assert_eq!(words(&text(&mut yes, "y")), ["approve -- perm-1"]);
    assert_eq!(yes.view, View::Lists);
    let mut no = asked("asks to use Bash");
    assert!(text(&mut no, "nnot now").is_empty());
    assert_eq!(words(&press(&mut no, &[Key::Enter])), ["deny --reason=not now -- perm-1"]);
    let mut bare = asked("asks to use Bash");
    let denied = words(&press(&mut bare, &[Key::Char('n'), Key::Enter]));
    assert_eq!(denied, ["deny --reason=a person has said no -- perm-1"]);
}

#[test]
fn a_long_request_is_answered_only_when_its_last_line_was_drawn() {
    let whole = (0..60).map(|n| format!("line {n}\n")).collect::<String>();
    let mut state = asked(&whole);
    for _ in 0..2 {
        assert!(text(&mut state, "y").is_empty());
        assert_eq!(told(&state), "read it to its end first");
        press(&mut state, &[Key::PageDown]);
    }
    assert_eq!(words(&text(&mut state, "y")), ["approve -- perm-1"]);
    let mut unseen = asked(&whole);
    update(&mut unseen, Event::Key(Key::End));
    assert!(update(&mut unseen, Event::Key(Key::Char('y'))).is_empty(), "its end was not on the screen yet");
    let mut small = asked("short");
    small.size = (30, 5);
    update(&mut small, Event::Seen(Box::new(survey())));
    assert!(press(&mut small, &[Key::Char('y')]).is_empty(), "nothing is read where nothing is shown");
}

#[test]
fn a_request_that_changes_or_goes_while_it_is_read_is_not_answered() {
    let mut state = asked("ls");
    let mut other = survey();
    other.requests = Some(vec![request("perm-1", "bob", "rm -r /")]);
    update(&mut state, Event::Seen(Box::new(other)));
    assert!(update(&mut state, Event::Key(Key::Char('y'))).is_empty());
    state.drawn();
    assert_eq!(words(&text(&mut state, "y")), ["approve -- perm-1"], "now this was read");
    let mut gone = asked("ls");
    update(&mut gone, Event::Seen(Box::new(Sight { requests: Some(vec![]), ..survey() })));
    assert!(text(&mut gone, "y").is_empty() && told(&gone) == "it waits no longer");
    let mut twins = asked("ls");
    let requests = Some(vec![request("perm-1", "bob", "ls"), request("perm-1", "eve", "rm -r /")]);
    update(&mut twins, Event::Seen(Box::new(Sight { requests, ..survey() })));
    assert!(text(&mut twins, "y").is_empty() && told(&twins).contains("the same id"));
}

#[test]
fn nothing_but_a_request_is_answered() {
    let mut state = state(survey(), (80, 24));
    assert!(text(&mut state, "yn").is_empty());
    press(&mut state, &[Key::Down, Key::Enter]);
    assert!(text(&mut state, "yn").is_empty() && state.line == Line::Keys);
}

#[test]
fn attaching_needs_a_pane() {
    let mut state = state(survey(), (80, 24));
    assert!(text(&mut state, "a").is_empty() && told(&state).contains("no pane"));
    press(&mut state, &[Key::Down]);
    assert_eq!(text(&mut state, "a"), [Effect::Attach { name: "ann".to_owned() }]);
}

#[test]
fn a_member_is_shown_with_its_pane() {
    let mut state = state(survey(), (80, 24));
    let looked = press(&mut state, &[Key::Down, Key::Enter]);
    let name = || "ann".to_owned();
    assert_eq!(looked, [Effect::Screen { name: name(), pane: Pane::There }, Effect::Why { name: name() }]);
    update(&mut state, Event::Why { name: name(), text: "it works".to_owned() });
    update(&mut state, Event::Screen { name: "bob".to_owned(), text: "not hers".to_owned() });
    update(&mut state, Event::Screen { name: "ann".to_owned(), text: "hers".to_owned() });
    let View::Whole(whole) = &state.view else { panic!() };
    assert_eq!((whole.why.as_str(), whole.screen.as_str()), ("it works", "hers"));
    assert_eq!(whole.read, Read::ToItsEnd);
}

#[test]
fn what_is_chosen_stays_chosen_whatever_comes_and_its_neighbour_when_it_goes() {
    let mut state = state(survey(), (80, 24));
    press(&mut state, &[Key::Down, Key::Down]);
    let mut more = survey();
    more.members.insert(0, member("abe", "", "idle", "", ""));
    update(&mut state, Event::Seen(Box::new(more.clone())));
    assert_eq!(state.whose().as_deref(), Some("bob"));
    more.members.retain(|member| member.name != "bob");
    update(&mut state, Event::Seen(Box::new(more)));
    assert_eq!(state.whose().as_deref(), Some("carla"));
}

#[test]
fn the_stream_is_followed_unless_somebody_reads_further_up() {
    let mut state = state(survey(), (80, 24));
    press(&mut state, &[Key::BackTab]);
    let chosen = |state: &State| state.item().map(Item::key);
    let mut more = survey();
    more.messages.push(letter(4, "ann", "bob", "the fourth"));
    update(&mut state, Event::Seen(Box::new(more.clone())));
    assert_eq!(chosen(&state).as_deref(), Some("4"));
    press(&mut state, &[Key::Up]);
    more.messages.push(letter(5, "ann", "bob", "the fifth"));
    update(&mut state, Event::Seen(Box::new(more)));
    assert_eq!(chosen(&state).as_deref(), Some("3"));
    press(&mut state, &[Key::End]);
    assert_eq!(chosen(&state).as_deref(), Some("5"));
}

#[test]
fn a_filter_holds_while_it_is_typed_and_until_it_is_given_up() {
    let mut state = state(survey(), (80, 24));
    text(&mut state, "/AN");
    assert_eq!(state.items(Part::Members).len(), 1);
    press(&mut state, &[Key::Enter]);
    assert_eq!((state.items(Part::Members).len(), &state.line), (1, &Line::Keys));
    press(&mut state, &[Key::Escape]);
    assert_eq!(state.items(Part::Members).len(), 4);
}

#[test]
fn leaving_stopping_and_going_on() {
    let mut state = state(survey(), (80, 24));
    assert_eq!(text(&mut state, "q"), [Effect::Leave(0)]);
    assert_eq!(press(&mut state, &[Key::Control('c')]), [Effect::Leave(0)]);
    assert_eq!(update(&mut state, Event::End(143)), [Effect::Leave(143)]);
    assert_eq!(update(&mut state, Event::Stop), [Effect::Suspend]);
    assert_eq!(update(&mut state, Event::GoOn), [Effect::Renew]);
    press(&mut state, &[Key::Char('s')]);
    assert_eq!(press(&mut state, &[Key::Control('c')]), [Effect::Leave(0)]);
}

#[test]
fn what_changes_nothing_leaves_the_state_as_it_was() {
    let mut state = state(survey(), (80, 24));
    let before = state.clone();
    update(&mut state, Event::Seen(Box::new(survey())));
    assert_eq!(state, before, "so nothing is drawn");
    let failed = crate::event::Told::failed("x");
    assert_eq!(failed.outcome, Outcome::Failed);
}

#[test]
fn what_was_told_covers_no_line_that_counts_as_read() {
    let mut state = asked(&(0..20).map(|n| format!("line {n}\n")).collect::<String>());
    let View::Whole(whole) = &mut state.view else { panic!() };
    whole.read = Read::To(0);
    update(&mut state, Event::Told(Told::failed("a long refusal ".repeat(20))));
    state.drawn();
    assert!(update(&mut state, Event::Key(Key::Char('y'))).is_empty(), "its last lines were covered");
}

#[test]
fn a_page_of_which_the_middle_was_never_shown_is_not_read() {
    let mut state = asked(&(0..90).map(|n| format!("line {n}\n")).collect::<String>());
    press(&mut state, &[Key::End]);
    assert!(press(&mut state, &[Key::Char('y')]).is_empty());
    press(&mut state, &[Key::Home, Key::PageDown, Key::PageDown, Key::PageDown, Key::PageDown]);
    assert_eq!(words(&press(&mut state, &[Key::Char('y')])), ["approve -- perm-1"]);
}

#[test]
fn what_nobody_has_chosen_but_the_screen_shows_as_chosen_stays_so() {
    let mut state = state(survey(), (80, 24));
    let mut more = survey();
    let first = more.members[0].name.clone();
    update(&mut state, Event::Seen(Box::new(survey())));
    more.members.insert(0, member("abe", "", "idle", "", ""));
    update(&mut state, Event::Seen(Box::new(more)));
    assert_eq!(state.whose(), Some(first));
}

#[test]
fn where_nothing_is_shown_nothing_is_done() {
    let mut state = state(survey(), (30, 5));
    let keys = [Key::Char('K'), Key::Char('K'), Key::Char('x'), Key::Enter, Key::Char('a'), Key::Char('s')];
    assert!(keys.into_iter().all(|key| update(&mut state, Event::Key(key)).is_empty()));
    assert_eq!(update(&mut state, Event::Key(Key::Char('q'))), [Effect::Leave(0)]);
}
