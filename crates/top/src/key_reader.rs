//! Reads keys and what the mouse does from the terminal and sends them to the event loop.

use crate::ui_events_and_effects::{Key, MouseAction, UiEvent};
use ratatui::crossterm::event::{
    self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use std::sync::mpsc::Sender;

/// Starts the thread that reads the terminal. It ends with the event loop or the terminal.
pub(crate) fn start_key_reader(sender: Sender<UiEvent>) {
    std::thread::spawn(move || {
        while let Ok(read) = event::read() {
            let ui_event = match read {
                event::Event::Key(key) => to_key(key).map(UiEvent::Key),
                event::Event::Mouse(mouse) => {
                    mouse_action(mouse.kind).map(|action| UiEvent::Mouse(action, (mouse.column, mouse.row)))
                }
                event::Event::Paste(text) => Some(UiEvent::Paste(text)),
                event::Event::Resize(width, height) => Some(UiEvent::Resized(width, height)),
                _ => None,
            };
            if ui_event.is_some_and(|event| sender.send(event).is_err()) {
                return;
            }
        }
        // The terminal is closed.
        sender.send(UiEvent::Terminate(1)).ok();
    });
}

fn mouse_action(kind: MouseEventKind) -> Option<MouseAction> {
    match kind {
        MouseEventKind::Down(MouseButton::Left) => Some(MouseAction::Click),
        MouseEventKind::ScrollUp => Some(MouseAction::WheelUp),
        MouseEventKind::ScrollDown => Some(MouseAction::WheelDown),
        _ => None,
    }
}

fn to_key(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) if control => Key::Control(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
