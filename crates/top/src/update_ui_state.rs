//! Computes the next state of the screen, and the effects of an event. The functions do no I/O and
//! read no clock.

use crate::detail_page_layout;
use crate::team_snapshot_for_screen::{ListItem, Panel, ScreenSnapshot};
use crate::ui_events_and_effects::{
    ActionResult, BackgroundAction, Key, PaneAvailability, UiEffect, UiEvent,
};
use crate::ui_state::{
    ActiveView, BottomLine, DetailPage, InputPrompt, PromptPurpose, ReadProgress, UiState,
};
use std::sync::Arc;

/// The reason of a denial if the person typed no reason. The protocol requires a reason.
const DEFAULT_DENY_REASON: &str = "a person denied it";

/// Changes the state after an event, and returns the effects to run.
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
        UiEvent::SnapshotRead(snapshot) => apply_snapshot(state, *snapshot),
        UiEvent::ActionFinished(result) => {
            state.result = Some(result);
            Vec::new()
        }
        UiEvent::PaneCaptured { name, text } => {
            update_member_page(state, &name, |page| page.pane_screen = text)
        }
        UiEvent::Diagnosed { name, text } => update_member_page(state, &name, |page| page.diagnosis = text),
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
    if detail_page_layout::is_too_small(state.size) {
        // A screen of this size shows only `too small`, so the person can't see what a key does.
        // Only `q` works.
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

fn next_panel(panel: Panel, steps: usize) -> Panel {
    let at = Panel::ALL.iter().position(|other| *other == panel).unwrap_or(0);
    Panel::ALL[(at + steps) % Panel::ALL.len()]
}

fn open_details(state: &mut UiState) -> Vec<UiEffect> {
    let Some(item) = state.selected_item() else { return Vec::new() };
    let page = DetailPage {
        panel: state.panel,
        key: item.key(),
        text: item.details(),
        diagnosis: String::new(),
        pane_screen: String::new(),
        member: item.member_name().map(str::to_owned),
        first_line: 0,
        progress: ReadProgress::UpToLine(0),
    };
    let name = page.key.clone();
    let effects = match page.panel {
        Panel::Members => {
            vec![capture_effect(state, &name), UiEffect::Background(BackgroundAction::Diagnose { name })]
        }
        _ => Vec::new(),
    };
    state.view = ActiveView::Details(page);
    effects
}

fn capture_effect(state: &UiState, name: &str) -> UiEffect {
    let has_pane = state.snapshot.member(name).is_some_and(|member| member.pane.is_some());
    let pane = if has_pane { PaneAvailability::Exists } else { PaneAvailability::Missing };
    UiEffect::Background(BackgroundAction::CapturePane { name: name.to_owned(), pane })
}

fn handle_detail_key(state: &mut UiState, key: Key) -> Vec<UiEffect> {
    let page = isize::try_from(detail_page_layout::page_height(state.size)).unwrap_or(1).max(1);
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

/// Marks all lines of the open detail page as not seen, unless the user has seen the whole page.
/// Called when the size of the screen changes, because the page is then broken into other lines.
fn reset_progress(state: &mut UiState) {
    if let ActiveView::Details(DetailPage { progress: ReadProgress::UpToLine(read), .. }) = &mut state.view {
        *read = 0;
    }
}

/// Scrolls the page by a number of lines, at most until its last line is on the screen.
fn scroll(state: &mut UiState, by: isize) {
    let (size, capabilities) = (state.size, state.capabilities);
    if let ActiveView::Details(page) = &mut state.view {
        let max_first_line = detail_page_layout::page_lines(page, size, capabilities)
            .len()
            .saturating_sub(detail_page_layout::page_height(size));
        page.first_line = page.first_line.saturating_add_signed(by).min(max_first_line);
    }
}

/// The first step of answering a request.
enum AnswerStep {
    Run(UiEffect),
    AskReason(PromptPurpose),
}

/// Answers the plan or permission request whose page is open. The answer is refused unless the
/// whole page has been on the screen and the request is unchanged since then. It is also refused if
/// another open request has the same id.
fn answer_request(state: &mut UiState, first_step: impl Fn(&str) -> AnswerStep) -> Vec<UiEffect> {
    let ActiveView::Details(page) = &state.view else { return Vec::new() };
    if page.panel != Panel::Requests {
        return Vec::new();
    }
    let Some(requests) = &state.snapshot.requests else {
        let requests = state.suggested_commands.command(&["requests"]);
        return refuse(state, &format!("cannot answer: the requests can't be read; see `{requests}`"));
    };
    let Some(request) = requests.iter().find(|request| request.key() == page.key) else {
        return refuse(state, "cannot answer: the request is no longer open");
    };
    if page.progress != ReadProgress::Complete || request.details != page.text {
        return refuse(state, "read it to its end first");
    }
    if requests.iter().filter(|other| other.id == request.id).count() > 1 {
        let requests = state.suggested_commands.command(&["requests"]);
        return refuse(state, &format!("another request has the same id: answer it by hand, see {requests}"));
    }
    match first_step(&request.id) {
        AnswerStep::Run(effect) => {
            state.view = ActiveView::Lists;
            vec![effect]
        }
        AnswerStep::AskReason(purpose) => {
            start_prompt(state, purpose);
            Vec::new()
        }
    }
}

fn refuse(state: &mut UiState, reason: &str) -> Vec<UiEffect> {
    state.result = Some(ActionResult::failure(reason));
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
        return refuse(state, "no member is selected: choose one");
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
        Some(_) => vec![UiEffect::Background(BackgroundAction::Attach { name })],
        None => refuse(state, "it has no pane: Enter shows its output"),
    }
}

fn start_prompt(state: &mut UiState, purpose: PromptPurpose) {
    let text = if purpose == PromptPurpose::Filter { state.filter.clone() } else { String::new() };
    state.bottom_line = BottomLine::Prompt(InputPrompt { purpose, text });
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

/// Stores the prompt. A filter applies while it is typed.
fn update_prompt(state: &mut UiState, prompt: InputPrompt) {
    if prompt.purpose == PromptPurpose::Filter {
        state.filter.clone_from(&prompt.text);
    }
    state.bottom_line = BottomLine::Prompt(prompt);
}

fn submit_prompt(state: &mut UiState, InputPrompt { purpose, text }: InputPrompt) -> Vec<UiEffect> {
    let text = text.trim();
    match purpose {
        PromptPurpose::Filter => Vec::new(),
        PromptPurpose::Message(_) if text.is_empty() => Vec::new(),
        // The text goes to standard input, because the list of processes shows arguments.
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

fn teamctl_effect(args: &[&str], stdin: &str) -> UiEffect {
    let args = args.iter().map(|argument| (*argument).to_owned()).collect();
    UiEffect::Background(BackgroundAction::RunTeamctl { args, stdin: stdin.to_owned() })
}

/// Adds pasted text to the prompt, if one is open. Pasted text is never taken for keys.
fn handle_paste(state: &mut UiState, text: &str) -> Vec<UiEffect> {
    if let BottomLine::Prompt(mut prompt) = state.bottom_line.clone() {
        prompt.text.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        update_prompt(state, prompt);
    }
    Vec::new()
}

fn apply_snapshot(state: &mut UiState, snapshot: ScreenSnapshot) -> Vec<UiEffect> {
    // An equal snapshot keeps the old `Arc`, so that comparing the states is cheap.
    if *state.snapshot != snapshot {
        state.snapshot = Arc::new(snapshot);
    }
    state.pin_selection();
    let ActiveView::Details(page) = &mut state.view else { return Vec::new() };
    let items = state.snapshot.items(page.panel);
    let Some(item) = items.iter().find(|item| item.key() == page.key) else { return Vec::new() };
    let details = item.details();
    if details != page.text {
        page.text = details;
        if page.panel == Panel::Requests {
            (page.first_line, page.progress) = (0, ReadProgress::UpToLine(0));
            state.result = Some(ActionResult::failure("it has changed: read it again"));
        }
    }
    Vec::new()
}

/// Changes the page of a member, if it is open.
fn update_member_page(
    state: &mut UiState,
    name: &str,
    change: impl FnOnce(&mut DetailPage),
) -> Vec<UiEffect> {
    if let ActiveView::Details(page) = &mut state.view
        && page.panel == Panel::Members
        && page.key == name
    {
        change(page);
    }
    Vec::new()
}
