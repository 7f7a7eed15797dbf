//! What follows from an event: the next state, and what is to be done. No I/O, no clock.

use crate::event::{Effect, Event, Key, Pane, Told};
use crate::page;
use crate::sight::{Item, Part, Sight};
use crate::state::{Asks, Line, Prompt, Read, State, View, Whole};
use std::sync::Arc;

/// The reason of a no for which none was typed: the protocol needs one.
const NO: &str = "a person has said no";

/// The next state.
pub(crate) fn update(state: &mut State, event: Event) -> Vec<Effect> {
    match event {
        Event::Key(key) => key_pressed(state, key),
        Event::Paste(text) => pasted(state, &text),
        Event::Resized(width, height) => {
            state.size = (width, height);
            reread(state);
            scroll(state, 0);
            Vec::new()
        }
        Event::Seen(sight) => seen(state, *sight),
        Event::Told(told) => {
            state.told = Some(told);
            Vec::new()
        }
        Event::Screen { name, text } => known(state, &name, |whole| whole.screen = text),
        Event::Why { name, text } => known(state, &name, |whole| whole.why = text),
        Event::End(code) => vec![Effect::Leave(code)],
        Event::Stop => vec![Effect::Suspend],
        Event::GoOn => vec![Effect::Renew],
    }
}

fn key_pressed(state: &mut State, key: Key) -> Vec<Effect> {
    match key {
        Key::Control('c') => return vec![Effect::Leave(0)],
        Key::Control('l') => return vec![Effect::Renew],
        Key::Control('z') => return vec![Effect::Suspend],
        _ => {}
    }
    if page::is_too_small(state.size) {
        // Whatever is done is seen by whoever does it.
        return if key == Key::Char('q') { vec![Effect::Leave(0)] } else { Vec::new() };
    }
    state.told = None;
    match std::mem::replace(&mut state.line, Line::Keys) {
        Line::Prompt(prompt) => typed(state, prompt, key),
        Line::Sure(name) if key == Key::Char('K') => vec![verb(&["kill", "--", &name], "")],
        Line::Sure(_) => Vec::new(),
        Line::Keys => match state.view {
            View::Help => {
                state.view = View::Lists;
                Vec::new()
            }
            View::Lists => in_lists(state, key),
            View::Whole(_) => in_whole(state, key),
        },
    }
}

fn in_lists(state: &mut State, key: Key) -> Vec<Effect> {
    let page = usize::from(state.size.1).max(4) / 2;
    let at = state.at(state.part).unwrap_or(0);
    match key {
        Key::Up | Key::Char('k') => state.choose(at.saturating_sub(1)),
        Key::Down | Key::Char('j') => state.choose(at + 1),
        Key::PageUp => state.choose(at.saturating_sub(page)),
        Key::PageDown => state.choose(at + page),
        Key::Home | Key::Char('g') => state.choose(0),
        Key::End | Key::Char('G') => state.choose(usize::MAX),
        Key::Tab => state.part = next(state.part, 1),
        Key::BackTab => state.part = next(state.part, Part::ALL.len() - 1),
        Key::Enter => return open(state),
        Key::Escape => state.filter.clear(),
        Key::Char('/') => ask(state, Asks::Filter),
        Key::Char('q') => return vec![Effect::Leave(0)],
        other => return on_member(state, other),
    }
    Vec::new()
}

fn next(part: Part, steps: usize) -> Part {
    let at = Part::ALL.iter().position(|of| *of == part).unwrap_or(0);
    Part::ALL[(at + steps) % Part::ALL.len()]
}

fn open(state: &mut State) -> Vec<Effect> {
    let Some(item) = state.item() else { return Vec::new() };
    let whole = Whole {
        part: state.part,
        key: item.key(),
        text: item.whole(),
        why: String::new(),
        screen: String::new(),
        whose: item.whose().map(str::to_owned),
        top: 0,
        read: Read::To(0),
    };
    let name = whole.key.clone();
    let more = match whole.part {
        Part::Members => vec![look_at(state, &name), Effect::Why { name }],
        _ => Vec::new(),
    };
    state.view = View::Whole(whole);
    more
}

fn look_at(state: &State, name: &str) -> Effect {
    let there = state.sight.member(name).is_some_and(|member| member.pane.is_some());
    Effect::Screen { name: name.to_owned(), pane: if there { Pane::There } else { Pane::None } }
}

fn in_whole(state: &mut State, key: Key) -> Vec<Effect> {
    let page = isize::try_from(page::room(state.size)).unwrap_or(1).max(1);
    match key {
        Key::Up | Key::Char('k') => scroll(state, -1),
        Key::Down | Key::Char('j') => scroll(state, 1),
        Key::PageUp => scroll(state, -page),
        Key::PageDown | Key::Char(' ') => scroll(state, page),
        Key::Home | Key::Char('g') => scroll(state, isize::MIN / 2),
        Key::End | Key::Char('G') => scroll(state, isize::MAX / 2),
        Key::Escape | Key::Enter | Key::Char('q') => state.view = View::Lists,
        Key::Char('y') => return answer(state, |id| Answer::Act(verb(&["approve", "--", id], ""))),
        Key::Char('n') => return answer(state, |id| Answer::Ask(Asks::Deny(id.to_owned()))),
        other => return on_member(state, other),
    }
    Vec::new()
}

/// Lines of another width are others.
fn reread(state: &mut State) {
    if let View::Whole(Whole { read: Read::To(seen), .. }) = &mut state.view {
        *seen = 0;
    }
}

/// Never beyond the last line.
fn scroll(state: &mut State, by: isize) {
    let (size, manner) = (state.size, state.manner);
    if let View::Whole(whole) = &mut state.view {
        let most = page::lines(whole, size, manner).len().saturating_sub(page::room(size));
        whole.top = whole.top.saturating_add_signed(by).min(most);
    }
}

/// What an answer begins with.
enum Answer {
    Act(Effect),
    Ask(Asks),
}

/// Only of a request that was on the screen to its end, as it is now, and whose id is nobody else's.
fn answer(state: &mut State, begin: impl Fn(&str) -> Answer) -> Vec<Effect> {
    let View::Whole(whole) = &state.view else { return Vec::new() };
    if whole.part != Part::Requests {
        return Vec::new();
    }
    let Some(requests) = &state.sight.requests else {
        let requests = state.typed.command(&["requests"]);
        return refuse(state, &format!("what waits can't be read: {requests} says why"));
    };
    let Some(request) = requests.iter().find(|request| request.key() == whole.key) else {
        return refuse(state, "it waits no longer");
    };
    if whole.read != Read::ToItsEnd || request.whole != whole.text {
        return refuse(state, "read it to its end first");
    }
    if requests.iter().filter(|other| other.id == request.id).count() > 1 {
        let requests = state.typed.command(&["requests"]);
        return refuse(state, &format!("another request has the same id: answer it by hand, see {requests}"));
    }
    match begin(&request.id) {
        Answer::Act(effect) => {
            state.view = View::Lists;
            vec![effect]
        }
        Answer::Ask(what) => {
            ask(state, what);
            Vec::new()
        }
    }
}

fn refuse(state: &mut State, why: &str) -> Vec<Effect> {
    state.told = Some(Told::failed(why));
    Vec::new()
}

fn on_member(state: &mut State, key: Key) -> Vec<Effect> {
    let Key::Char(key) = key else { return Vec::new() };
    if key == '?' {
        state.view = View::Help;
    }
    if !matches!(key, 's' | 'x' | 'K' | 'a') {
        return Vec::new();
    }
    let Some(name) = state.whose() else { return refuse(state, "that is nobody's: choose a member") };
    match key {
        's' => ask(state, Asks::Send(name)),
        'x' => ask(state, Asks::Shutdown(name)),
        'K' => state.line = Line::Sure(name),
        _ => return attach(state, name),
    }
    Vec::new()
}

fn attach(state: &mut State, name: String) -> Vec<Effect> {
    match state.sight.member(&name).and_then(|member| member.pane.as_ref()) {
        Some(_) => vec![Effect::Attach { name }],
        None => refuse(state, "it has no pane: Enter shows its output"),
    }
}

fn ask(state: &mut State, what: Asks) {
    let text = if what == Asks::Filter { state.filter.clone() } else { String::new() };
    state.line = Line::Prompt(Prompt { what, text });
}

fn typed(state: &mut State, mut prompt: Prompt, key: Key) -> Vec<Effect> {
    match key {
        Key::Char(c) => prompt.text.push(c),
        Key::Backspace => drop(prompt.text.pop()),
        Key::Control('u') => prompt.text.clear(),
        Key::Enter => return entered(state, prompt),
        Key::Escape => {
            if prompt.what == Asks::Filter {
                state.filter.clear();
            }
            return Vec::new();
        }
        _ => {}
    }
    goes_on(state, prompt);
    Vec::new()
}

/// A filter is seen while it is typed.
fn goes_on(state: &mut State, prompt: Prompt) {
    if prompt.what == Asks::Filter {
        state.filter.clone_from(&prompt.text);
    }
    state.line = Line::Prompt(prompt);
}

fn entered(state: &mut State, Prompt { what, text }: Prompt) -> Vec<Effect> {
    let text = text.trim();
    match what {
        Asks::Filter => Vec::new(),
        Asks::Send(_) if text.is_empty() => Vec::new(),
        // Over standard input: not everybody who sees the processes is to read it.
        Asks::Send(to) => vec![verb(&["send", "--", &to, "-"], text)],
        Asks::Shutdown(name) if text.is_empty() => vec![verb(&["shutdown", "--no-wait", "--", &name], "")],
        Asks::Shutdown(name) => vec![verb(&["shutdown", "--no-wait", "--reason=-", "--", &name], text)],
        Asks::Deny(id) => {
            state.view = View::Lists;
            let reason = if text.is_empty() { NO } else { text };
            vec![verb(&["deny", &format!("--reason={reason}"), "--", &id], "")]
        }
    }
}

fn verb(words: &[&str], input: &str) -> Effect {
    Effect::Verb { words: words.iter().map(|word| (*word).to_owned()).collect(), input: input.to_owned() }
}

/// Text, wherever something is typed; never keys.
fn pasted(state: &mut State, text: &str) -> Vec<Effect> {
    if let Line::Prompt(mut prompt) = state.line.clone() {
        prompt.text.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        goes_on(state, prompt);
    }
    Vec::new()
}

fn seen(state: &mut State, sight: Sight) -> Vec<Effect> {
    // What has not changed stays the same, so that nobody compares it again.
    if *state.sight != sight {
        state.sight = Arc::new(sight);
    }
    state.settle();
    let View::Whole(whole) = &mut state.view else { return Vec::new() };
    let items = state.sight.items(whole.part);
    let Some(item) = items.iter().find(|item| item.key() == whole.key) else { return Vec::new() };
    let now = item.whole();
    if now != whole.text {
        whole.text = now;
        if whole.part == Part::Requests {
            (whole.top, whole.read) = (0, Read::To(0));
            state.told = Some(Told::failed("it has changed: read it again"));
        }
    }
    Vec::new()
}

/// More of the member whose page is open.
fn known(state: &mut State, name: &str, add: impl FnOnce(&mut Whole)) -> Vec<Effect> {
    if let View::Whole(whole) = &mut state.view
        && whole.part == Part::Members
        && whole.key == name
    {
        add(whole);
    }
    Vec::new()
}
