//! What follows from an event: the next state, and what is to be done. No I/O, no clock.

use crate::event::{ActionResult, Key, PaneAvailability, UiEffect, UiEvent};
use crate::page_layout;
use crate::snapshot::{ListItem, Panel, ScreenSnapshot};
use crate::state::{ActiveView, BottomLine, DetailPage, InputPrompt, PromptPurpose, ReadProgress, UiState};
use std::sync::Arc;

/// The reason of a no for which none was typed: the protocol needs one.
const DEFAULT_DENY_REASON: &str = "a person has said no";

/// The next state.
pub(crate) fn update(state: &mut UiState, event: UiEvent) -> Vec<UiEffect> {
    match event {
        UiEvent::Key(key) => handle_key(state, key),
        UiEvent::Paste(text) => handle_paste(state, &text),
        UiEvent::Resized(width, height) => {
            state.size = (width, height);
            reset_progress(state);
            scroll(state, 0);
            Vec::new()
        }
        UiEvent::SnapshotRead(sight) => apply_snapshot(state, *sight),
        UiEvent::ActionFinished(told) => {
            state.result = Some(told);
            Vec::new()
        }
        UiEvent::PaneCaptured { name, text } => {
            update_member_page(state, &name, |whole| whole.pane_screen = text)
        }
        UiEvent::Diagnosed { name, text } => update_member_page(state, &name, |whole| whole.diagnosis = text),
        UiEvent::Terminate(code) => vec![UiEffect::Quit(code)],
        UiEvent::SuspendRequested => vec![UiEffect::Suspend],
        UiEvent::Continued => vec![UiEffect::Redraw],
    }
}

fn handle_key(state: &mut UiState, key: Key) -> Vec<UiEffect> {
    match key {
        Key::Control('c') => return vec![UiEffect::Quit(0)],
        Key::Control('l') => return vec![UiEffect::Redraw],
        Key::Control('z') => return vec![UiEffect::Suspend],
        _ => {}
    }
    if page_layout::is_too_small(state.size) {
        // Whatever is done is seen by whoever does it.
        return if key == Key::Char('q') { vec![UiEffect::Quit(0)] } else { Vec::new() };
    }
    state.result = None;
    match std::mem::replace(&mut state.bottom_line, BottomLine::KeyHelp) {
        BottomLine::Prompt(prompt) => handle_prompt_key(state, prompt, key),
        BottomLine::ConfirmKill(name) if key == Key::Char('K') => {
            vec![teamctl_effect(&["kill", "--", &name], "")]
        }
        BottomLine::ConfirmKill(_) => Vec::new(),
        BottomLine::KeyHelp => match state.view {
            ActiveView::Help => {
                state.view = ActiveView::Lists;
                Vec::new()
            }
            ActiveView::Lists => handle_list_key(state, key),
            ActiveView::Details(_) => handle_detail_key(state, key),
        },
    }
}

fn handle_list_key(state: &mut UiState, key: Key) -> Vec<UiEffect> {
    let page = usize::from(state.size.1).max(4) / 2;
    let at = state.selected_index(state.panel).unwrap_or(0);
    match key {
        Key::Up | Key::Char('k') => state.select(at.saturating_sub(1)),
        Key::Down | Key::Char('j') => state.select(at + 1),
        Key::PageUp => state.select(at.saturating_sub(page)),
        Key::PageDown => state.select(at + page),
        Key::Home | Key::Char('g') => state.select(0),
        Key::End | Key::Char('G') => state.select(usize::MAX),
        Key::Tab => state.panel = next_panel(state.panel, 1),
        Key::BackTab => state.panel = next_panel(state.panel, Panel::ALL.len() - 1),
        Key::Enter => return open_details(state),
        Key::Escape => state.filter.clear(),
        Key::Char('/') => start_prompt(state, PromptPurpose::Filter),
        Key::Char('q') => return vec![UiEffect::Quit(0)],
        other => return handle_member_key(state, other),
    }
    Vec::new()
}

fn next_panel(part: Panel, steps: usize) -> Panel {
    let at = Panel::ALL.iter().position(|of| *of == part).unwrap_or(0);
    Panel::ALL[(at + steps) % Panel::ALL.len()]
}

fn open_details(state: &mut UiState) -> Vec<UiEffect> {
    let Some(item) = state.selected_item() else { return Vec::new() };
    let whole = DetailPage {
        part: state.panel,
        key: item.key(),
        text: item.details(),
        diagnosis: String::new(),
        pane_screen: String::new(),
        member: item.member_name().map(str::to_owned),
        first_line: 0,
        progress: ReadProgress::UpToLine(0),
    };
    let name = whole.key.clone();
    let more = match whole.part {
        Panel::Members => vec![capture_effect(state, &name), UiEffect::Diagnose { name }],
        _ => Vec::new(),
    };
    state.view = ActiveView::Details(whole);
    more
}

fn capture_effect(state: &UiState, name: &str) -> UiEffect {
    let there = state.snapshot.member(name).is_some_and(|member| member.pane.is_some());
    UiEffect::CapturePane {
        name: name.to_owned(),
        pane: if there { PaneAvailability::Exists } else { PaneAvailability::Missing },
    }
}

fn handle_detail_key(state: &mut UiState, key: Key) -> Vec<UiEffect> {
    let page = isize::try_from(page_layout::page_height(state.size)).unwrap_or(1).max(1);
    match key {
        Key::Up | Key::Char('k') => scroll(state, -1),
        Key::Down | Key::Char('j') => scroll(state, 1),
        Key::PageUp => scroll(state, -page),
        Key::PageDown | Key::Char(' ') => scroll(state, page),
        Key::Home | Key::Char('g') => scroll(state, isize::MIN / 2),
        Key::End | Key::Char('G') => scroll(state, isize::MAX / 2),
        Key::Escape | Key::Enter | Key::Char('q') => state.view = ActiveView::Lists,
        Key::Char('y') => {
            return answer_request(state, |id| AnswerStep::Run(teamctl_effect(&["approve", "--", id], "")));
        }
        Key::Char('n') => {
            return answer_request(state, |id| {
                AnswerStep::AskReason(PromptPurpose::DenyReason(id.to_owned()))
            });
        }
        other => return handle_member_key(state, other),
    }
    Vec::new()
}

/// Lines of another width are others.
fn reset_progress(state: &mut UiState) {
    if let ActiveView::Details(DetailPage { progress: ReadProgress::UpToLine(seen), .. }) = &mut state.view {
        *seen = 0;
    }
}

/// Never beyond the last line.
fn scroll(state: &mut UiState, by: isize) {
    let (size, manner) = (state.size, state.capabilities);
    if let ActiveView::Details(whole) = &mut state.view {
        let most =
            page_layout::page_lines(whole, size, manner).len().saturating_sub(page_layout::page_height(size));
        whole.first_line = whole.first_line.saturating_add_signed(by).min(most);
    }
}

/// What an answer begins with.
enum AnswerStep {
    Run(UiEffect),
    AskReason(PromptPurpose),
}

/// Only of a request that was on the screen to its end, as it is now, and whose id is nobody else's.
fn answer_request(state: &mut UiState, begin: impl Fn(&str) -> AnswerStep) -> Vec<UiEffect> {
    let ActiveView::Details(whole) = &state.view else { return Vec::new() };
    if whole.part != Panel::Requests {
        return Vec::new();
    }
    let Some(requests) = &state.snapshot.requests else {
        let requests = state.suggested_commands.command(&["requests"]);
        return refuse(state, &format!("what waits can't be read: {requests} says why"));
    };
    let Some(request) = requests.iter().find(|request| request.key() == whole.key) else {
        return refuse(state, "it waits no longer");
    };
    if whole.progress != ReadProgress::Complete || request.details != whole.text {
        return refuse(state, "read it to its end first");
    }
    if requests.iter().filter(|other| other.id == request.id).count() > 1 {
        let requests = state.suggested_commands.command(&["requests"]);
        return refuse(state, &format!("another request has the same id: answer it by hand, see {requests}"));
    }
    match begin(&request.id) {
        AnswerStep::Run(effect) => {
            state.view = ActiveView::Lists;
            vec![effect]
        }
        AnswerStep::AskReason(what) => {
            start_prompt(state, what);
            Vec::new()
        }
    }
}

fn refuse(state: &mut UiState, why: &str) -> Vec<UiEffect> {
    state.result = Some(ActionResult::failure(why));
    Vec::new()
}

fn handle_member_key(state: &mut UiState, key: Key) -> Vec<UiEffect> {
    let Key::Char(key) = key else { return Vec::new() };
    if key == '?' {
        state.view = ActiveView::Help;
    }
    if !matches!(key, 's' | 'x' | 'K' | 'a') {
        return Vec::new();
    }
    let Some(name) = state.selected_member() else {
        return refuse(state, "that is nobody's: choose a member");
    };
    match key {
        's' => start_prompt(state, PromptPurpose::Message(name)),
        'x' => start_prompt(state, PromptPurpose::ShutdownReason(name)),
        'K' => state.bottom_line = BottomLine::ConfirmKill(name),
        _ => return attach(state, name),
    }
    Vec::new()
}

fn attach(state: &mut UiState, name: String) -> Vec<UiEffect> {
    match state.snapshot.member(&name).and_then(|member| member.pane.as_ref()) {
        Some(_) => vec![UiEffect::Attach { name }],
        None => refuse(state, "it has no pane: Enter shows its output"),
    }
}

fn start_prompt(state: &mut UiState, what: PromptPurpose) {
    let text = if what == PromptPurpose::Filter { state.filter.clone() } else { String::new() };
    state.bottom_line = BottomLine::Prompt(InputPrompt { purpose: what, text });
}

fn handle_prompt_key(state: &mut UiState, mut prompt: InputPrompt, key: Key) -> Vec<UiEffect> {
    match key {
        Key::Char(c) => prompt.text.push(c),
        Key::Backspace => drop(prompt.text.pop()),
        Key::Control('u') => prompt.text.clear(),
        Key::Enter => return submit_prompt(state, prompt),
        Key::Escape => {
            if prompt.purpose == PromptPurpose::Filter {
                state.filter.clear();
            }
            return Vec::new();
        }
        _ => {}
    }
    update_prompt(state, prompt);
    Vec::new()
}

/// A filter is seen while it is typed.
fn update_prompt(state: &mut UiState, prompt: InputPrompt) {
    if prompt.purpose == PromptPurpose::Filter {
        state.filter.clone_from(&prompt.text);
    }
    state.bottom_line = BottomLine::Prompt(prompt);
}

fn submit_prompt(state: &mut UiState, InputPrompt { purpose: what, text }: InputPrompt) -> Vec<UiEffect> {
    let text = text.trim();
    match what {
        PromptPurpose::Filter => Vec::new(),
        PromptPurpose::Message(_) if text.is_empty() => Vec::new(),
        // Over standard input: not everybody who sees the processes is to read it.
        PromptPurpose::Message(to) => vec![teamctl_effect(&["send", "--", &to, "-"], text)],
        PromptPurpose::ShutdownReason(name) if text.is_empty() => {
            vec![teamctl_effect(&["shutdown", "--no-wait", "--", &name], "")]
        }
        PromptPurpose::ShutdownReason(name) => {
            vec![teamctl_effect(&["shutdown", "--no-wait", "--reason=-", "--", &name], text)]
        }
        PromptPurpose::DenyReason(id) => {
            state.view = ActiveView::Lists;
            let reason = if text.is_empty() { DEFAULT_DENY_REASON } else { text };
            vec![teamctl_effect(&["deny", &format!("--reason={reason}"), "--", &id], "")]
        }
    }
}

fn teamctl_effect(words: &[&str], input: &str) -> UiEffect {
    UiEffect::RunTeamctl {
        args: words.iter().map(|word| (*word).to_owned()).collect(),
        stdin: input.to_owned(),
    }
}

/// Text, wherever something is typed; never keys.
fn handle_paste(state: &mut UiState, text: &str) -> Vec<UiEffect> {
    if let BottomLine::Prompt(mut prompt) = state.bottom_line.clone() {
        prompt.text.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        update_prompt(state, prompt);
    }
    Vec::new()
}

fn apply_snapshot(state: &mut UiState, sight: ScreenSnapshot) -> Vec<UiEffect> {
    // What has not changed stays the same, so that nobody compares it again.
    if *state.snapshot != sight {
        state.snapshot = Arc::new(sight);
    }
    state.pin_selection();
    let ActiveView::Details(whole) = &mut state.view else { return Vec::new() };
    let items = state.snapshot.items(whole.part);
    let Some(item) = items.iter().find(|item| item.key() == whole.key) else { return Vec::new() };
    let now = item.details();
    if now != whole.text {
        whole.text = now;
        if whole.part == Panel::Requests {
            (whole.first_line, whole.progress) = (0, ReadProgress::UpToLine(0));
            state.result = Some(ActionResult::failure("it has changed: read it again"));
        }
    }
    Vec::new()
}

/// More of the member whose page is open.
fn update_member_page(state: &mut UiState, name: &str, add: impl FnOnce(&mut DetailPage)) -> Vec<UiEffect> {
    if let ActiveView::Details(whole) = &mut state.view
        && whole.part == Panel::Members
        && whole.key == name
    {
        add(whole);
    }
    Vec::new()
}
