//! Computes the next state of the screen, and the effects of an event. The functions do no I/O and
//! read no clock.

use crate::detail_page_layout;
use crate::film::film_keys::handle_film_key;
use crate::find_and_copy::{copy_item, select_next_match};
use crate::handle_mouse::{handle_mouse, toggle_mouse};
use crate::team_snapshot_for_screen::{Panel, ScreenSnapshot};
use crate::ui_events_and_effects::{BackgroundAction, Key, UiEffect, UiEvent};
use crate::ui_state::{ActiveView, BottomLine, InputPrompt, PromptPurpose, UiState};
use crate::update_detail_page::{
    self, approve_request, deny_request, open_details, reset_progress, scroll, update_member_page,
};
use std::sync::Arc;

/// The reason of a denial if the person typed no reason. The protocol requires a reason.
const DEFAULT_DENY_REASON: &str = "a person denied it";

/// Changes the state after an event, and returns the effects to run.
pub(crate) fn update(state: &mut UiState, event: UiEvent) -> Vec<UiEffect> {
    let mut effects = handle_event(state, event);
    effects.extend(update_detail_page::follow_selection(state));
    effects
}

fn handle_event(state: &mut UiState, event: UiEvent) -> Vec<UiEffect> {
    match event {
        UiEvent::Key(key) => handle_key(state, key),
        UiEvent::Mouse(action, at) => {
            state.result = None;
            handle_mouse(state, action, at)
        }
        UiEvent::Paste(text) => handle_paste(state, &text),
        UiEvent::Resized(width, height) => {
            state.size = (width, height);
            reset_progress(state);
            scroll(state, 0);
            Vec::new()
        }
        UiEvent::SnapshotRead(snapshot) => apply_snapshot(state, *snapshot),
        UiEvent::FilmMoved(snapshot, status) => {
            state.film = Some(status);
            apply_snapshot(state, *snapshot)
        }
        UiEvent::ActionFinished(result) => {
            state.result = Some(result);
            Vec::new()
        }
        UiEvent::PaneCaptured { name, output } => {
            update_member_page(state, &name, |page| page.output = Some(output))
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
            vec![UiEffect::teamctl(&["kill", "--", &name], "")]
        }
        BottomLine::ConfirmKill(_) => Vec::new(),
        BottomLine::KeyHelp => match state.view {
            ActiveView::Help => {
                state.view = ActiveView::Lists;
                Vec::new()
            }
            view => handle_film_key(state, key).unwrap_or_else(|| match view {
                ActiveView::Lists | ActiveView::Help => handle_list_key(state, key),
                ActiveView::Details => handle_detail_key(state, key),
            }),
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
        Key::Char('/') => state.start_prompt(PromptPurpose::Search),
        Key::Char('n') => return select_next_match(state),
        Key::Char('f') => state.start_prompt(PromptPurpose::Filter),
        Key::Char('t') => return vec![UiEffect::ChooseTeam],
        Key::Char('q') => return vec![UiEffect::Quit(0)],
        other => return handle_member_key(state, other),
    }
    Vec::new()
}

fn next_panel(panel: Panel, steps: usize) -> Panel {
    let at = Panel::ALL.iter().position(|other| *other == panel).unwrap_or(0);
    Panel::ALL[(at + steps) % Panel::ALL.len()]
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
        Key::Char('y') => return approve_request(state),
        Key::Char('n') => return deny_request(state),
        other => return handle_member_key(state, other),
    }
    Vec::new()
}

fn handle_member_key(state: &mut UiState, key: Key) -> Vec<UiEffect> {
    let Key::Char(key) = key else { return Vec::new() };
    match key {
        '?' => state.view = ActiveView::Help,
        'c' => return copy_item(state),
        'm' => return toggle_mouse(state),
        _ => {}
    }
    if !matches!(key, 's' | 'x' | 'K' | 'a') {
        return Vec::new();
    }
    let Some(name) = state.selected_member() else {
        return state.refuse("no member is selected: choose one");
    };
    match key {
        's' => state.start_prompt(PromptPurpose::Message(name)),
        'x' => state.start_prompt(PromptPurpose::ShutdownReason(name)),
        'K' => state.bottom_line = BottomLine::ConfirmKill(name),
        _ => return attach(state, name),
    }
    Vec::new()
}

fn attach(state: &mut UiState, name: String) -> Vec<UiEffect> {
    match state.snapshot.member(&name).and_then(|member| member.pane.as_ref()) {
        Some(_) => vec![UiEffect::Background(BackgroundAction::Attach { name })],
        None => state.refuse("it has no pane: Enter shows its output"),
    }
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
        PromptPurpose::Search => {
            text.clone_into(&mut state.search);
            select_next_match(state)
        }
        PromptPurpose::Message(_) if text.is_empty() => Vec::new(),
        // The text goes to standard input, because the list of processes shows arguments.
        PromptPurpose::Message(to) => vec![UiEffect::teamctl(&["send", "--", &to, "-"], text)],
        PromptPurpose::ShutdownReason(name) if text.is_empty() => {
            vec![UiEffect::teamctl(&["shutdown", "--no-wait", "--", &name], "")]
        }
        PromptPurpose::ShutdownReason(name) => {
            vec![UiEffect::teamctl(&["shutdown", "--no-wait", "--reason=-", "--", &name], text)]
        }
        PromptPurpose::DenyReason(id) => {
            state.view = ActiveView::Lists;
            let reason = if text.is_empty() { DEFAULT_DENY_REASON } else { text };
            vec![UiEffect::teamctl(&["deny", "--reason=-", "--", &id], reason)]
        }
    }
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
    update_detail_page::update_page_text(state)
}
