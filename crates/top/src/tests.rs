//! Whole screens, as text beside this file, and what keys do.

mod keys;
mod screens;

use crate::event::{Effect, Event, Key};
use crate::manner::{Colors, Letters, Manner};
use crate::sight::{Daemon, Found, Letter, Member, Request, Sight};
use crate::state::State;
use crate::update::update;
use protocol::name::TeamName;
use protocol::task::Task;
use std::sync::Arc;
use view::suggested_commands::SuggestedCommands;

const WHOLE: Manner = Manner { colors: Colors::Shown, letters: Letters::Unicode };

/// A state of that size in which this was seen.
fn state(sight: Sight, size: (u16, u16)) -> State {
    let mut state = State::new(TeamName::parse("survey").unwrap(), SuggestedCommands::default(), WHOLE, size);
    update(&mut state, Event::Seen(Box::new(sight)));
    state
}

fn press(state: &mut State, keys: &[Key]) -> Vec<Effect> {
    let pressed = |key: &Key| {
        let effects = update(state, Event::Key(*key));
        state.drawn();
        effects
    };
    keys.iter().flat_map(pressed).collect()
}

fn text(state: &mut State, keys: &str) -> Vec<Effect> {
    press(state, &keys.chars().map(Key::Char).collect::<Vec<_>>())
}

fn member(name: &str, color: &str, state: &str, task: &str, last: &str) -> Member {
    Member {
        name: name.to_owned(),
        color: color.to_owned(),
        state: state.to_owned(),
        since: "14:05".to_owned(),
        unread: Some(0),
        task: task.to_owned(),
        used: String::new(),
        last: last.to_owned(),
        pane: Some("%3".to_owned()),
        about: vec!["phase running".to_owned(), "pane %3".to_owned()],
    }
}

fn letter(number: u64, from: &str, to: &str, about: &str) -> Arc<Letter> {
    let clock = format!("14:{number:02}");
    let (from, to, about, text) =
        (from.to_owned(), to.to_owned(), about.to_owned(), format!("{about}, in full"));
    Arc::new(Letter { number, at: number, clock, from, to, about, text, times: 1 })
}

fn request(id: &str, from: &str, whole: &str) -> Request {
    let about = whole.lines().next().unwrap_or_default().to_owned();
    Request {
        id: id.to_owned(),
        from: from.to_owned(),
        since: "14:07".to_owned(),
        about,
        whole: whole.to_owned(),
    }
}

/// Of each kind something.
fn survey() -> Sight {
    let tasks = [
        r#"{"id":"1","subject":"count the lines","status":"completed","owner":"ann"}"#,
        r#"{"id":"2","subject":"read the manual","status":"in_progress","owner":"ann"}"#,
        r#"{"id":"3","subject":"draw the map","status":"pending"}"#,
        r#"{"id":"4","subject":"write it up","status":"pending","blockedBy":["2","3"]}"#,
        r#"{"id":"5","subject":"send it","status":"pending","owner":"bob","blockedBy":["4"]}"#,
    ];
    let tasks: Vec<Task> = tasks.iter().map(|text| Task::parse(text).unwrap()).collect();
    let lead = Member { state: "lead".to_owned(), unread: Some(2), ..Member::default() };
    Sight {
        daemon: Daemon::Answers,
        team: Found::There,
        budget: String::new(),
        members: vec![
            Member { name: "team-lead".to_owned(), ..lead },
            member("ann", "blue", "active", "#2 read the manual", "reading chapter 3 of 9, which is long"),
            member("bob", "green", "idle!asks", "", "waiting"),
            Member { unread: None, pane: None, ..member("carla", "red", "failed", "", "exit 1") },
        ],
        tasks: Arc::new(crate::graph::rows(&tasks, &[])),
        messages: vec![
            letter(1, "team-lead", "ann", "read the manual"),
            letter(2, "ann", "team-lead", "task 1 completed"),
            letter(3, "bob", "ann", "which chapter do you read?"),
        ],
        requests: Some(vec![request(
            "perm-1",
            "bob",
            "asks to use Bash: run the tests\ninput: {\n  \"command\": \"make test\"\n}",
        )]),
    }
}
