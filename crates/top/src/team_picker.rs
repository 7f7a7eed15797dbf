//! Lets a person choose a team, if several may be meant.

use crate::terminal_capabilities::TerminalCapabilities;
use crate::terminal_screen::TerminalScreen;
use crate::ui_events_and_effects::{Key, UiEvent};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use std::sync::mpsc::Receiver;

/// The keys of the first team, the second and so on. `q` quits.
const CHOICE_KEYS: &str = "123456789abcdefghijklmnoprstuvwxyz";

/// The choice of a person.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TeamChoice {
    Team(TeamName),
    /// No team: the program ends with this exit code.
    Quit(u8),
}

/// What an event does in the menu.
#[derive(Debug, PartialEq, Eq)]
enum PickerAction {
    Finish(TeamChoice),
    Suspend,
    Redraw,
    Ignore,
}

/// Shows the menu until a team is chosen. A single team is chosen without a menu.
pub(crate) fn pick_team(
    screen: &mut TerminalScreen,
    teams: &[TeamName],
    capabilities: TerminalCapabilities,
    events: &Receiver<UiEvent>,
) -> Result<TeamChoice, ErrorReport> {
    if let [only] = teams {
        return Ok(TeamChoice::Team(only.clone()));
    }
    loop {
        screen.draw_lines(&menu_lines(teams, capabilities, screen.size().1.into()))?;
        match events
            .recv()
            .map_or(PickerAction::Finish(TeamChoice::Quit(0)), |event| action_for(&event, teams))
        {
            PickerAction::Finish(choice) => return Ok(choice),
            PickerAction::Suspend => screen.suspend()?,
            PickerAction::Redraw => screen.redraw_all()?,
            PickerAction::Ignore => {}
        }
    }
}

fn action_for(event: &UiEvent, teams: &[TeamName]) -> PickerAction {
    match event {
        UiEvent::Key(Key::Char('q') | Key::Escape | Key::Control('c')) => {
            PickerAction::Finish(TeamChoice::Quit(0))
        }
        UiEvent::Key(Key::Char(key)) => {
            let team = CHOICE_KEYS.chars().position(|known| known == *key).and_then(|at| teams.get(at));
            team.map_or(PickerAction::Ignore, |team| PickerAction::Finish(TeamChoice::Team(team.clone())))
        }
        UiEvent::Terminate(code) => PickerAction::Finish(TeamChoice::Quit(*code)),
        UiEvent::SuspendRequested | UiEvent::Key(Key::Control('z')) => PickerAction::Suspend,
        UiEvent::Continued | UiEvent::Key(Key::Control('l')) => PickerAction::Redraw,
        _ => PickerAction::Ignore,
    }
}

/// The lines of the menu. Its last line counts the teams that have no line or no key.
fn menu_lines(teams: &[TeamName], capabilities: TerminalCapabilities, height: usize) -> Vec<String> {
    let line_count = height.saturating_sub(3).min(CHOICE_KEYS.len());
    let team =
        |(key, team): (char, &TeamName)| format!(" {key}  {}", capabilities.printable_line(team.as_str()));
    let mut lines = vec!["Which team? Its key shows it, q leaves.".to_owned(), String::new()];
    lines.extend(CHOICE_KEYS.chars().zip(teams).map(team).take(line_count));
    match teams.len().saturating_sub(line_count) {
        0 => {}
        rest => lines.push(format!("{rest} more: teamctl top -t TEAM")),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal_capabilities::{Charset, ColorSupport};

    fn teams(count: usize) -> Vec<TeamName> {
        (1..=count).map(|n| TeamName::parse(&format!("t{n}")).unwrap()).collect()
    }

    fn key(key: char) -> UiEvent {
        UiEvent::Key(Key::Char(key))
    }

    #[test]
    fn key_chooses_a_team_and_others_are_ignored() {
        let teams = teams(11);
        let finish_with = |at: usize| PickerAction::Finish(TeamChoice::Team(teams[at].clone()));
        assert_eq!(
            (action_for(&key('1'), &teams), action_for(&key('b'), &teams)),
            (finish_with(0), finish_with(10))
        );
        for ignored_key in ['0', 'c', 'K', '\u{e4}'] {
            assert_eq!(action_for(&key(ignored_key), &teams), PickerAction::Ignore);
        }
        assert_eq!(action_for(&UiEvent::Paste("1".to_owned()), &teams), PickerAction::Ignore);
        assert_eq!(action_for(&key('q'), &teams), PickerAction::Finish(TeamChoice::Quit(0)));
        assert_eq!(action_for(&UiEvent::Terminate(143), &teams), PickerAction::Finish(TeamChoice::Quit(143)));
    }

    #[test]
    fn teams_that_do_not_fit_are_counted() {
        let capabilities = TerminalCapabilities { colors: ColorSupport::Disabled, charset: Charset::Ascii };
        let lines = menu_lines(&teams(2), capabilities, 10);
        assert_eq!(lines[2..], [" 1  t1", " 2  t2"]);
        assert_eq!(menu_lines(&teams(8), capabilities, 10).last().unwrap(), "1 more: teamctl top -t TEAM");
        assert_eq!(menu_lines(&teams(40), capabilities, 90).last().unwrap(), "6 more: teamctl top -t TEAM");
    }
}
