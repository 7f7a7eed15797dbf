//! Which team: where several may be meant they are listed, and one key chooses.

use crate::event::{Event, Key};
use crate::manner::Manner;
use crate::screen::Screen;
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::sync::mpsc::Receiver;

/// The keys of the first, the second and so on; `q` leaves.
const KEYS: &str = "123456789abcdefghijklmnoprstuvwxyz";

/// What was chosen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Team(TeamName),
    /// None; ends, with that exit code.
    Leave(u8),
}

/// What an event means here.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Chosen(Choice),
    Suspend,
    Renew,
    Nothing,
}

/// Asks until one is chosen; the only one is not asked for.
pub(crate) fn choose(
    screen: &mut Screen,
    teams: &[TeamName],
    manner: Manner,
    events: &Receiver<Event>,
) -> Result<Choice, ErrorReport> {
    if let [only] = teams {
        return Ok(Choice::Team(only.clone()));
    }
    loop {
        screen.draw_lines(&lines(teams, manner, screen.size().1.into()))?;
        match events.recv().map_or(Meaning::Chosen(Choice::Leave(0)), |event| meaning(&event, teams)) {
            Meaning::Chosen(choice) => return Ok(choice),
            Meaning::Suspend => screen.suspend()?,
            Meaning::Renew => screen.renew()?,
            Meaning::Nothing => {}
        }
    }
}

fn meaning(event: &Event, teams: &[TeamName]) -> Meaning {
    match event {
        Event::Key(Key::Char('q') | Key::Escape | Key::Control('c')) => Meaning::Chosen(Choice::Leave(0)),
        Event::Key(Key::Char(key)) => {
            let team = KEYS.chars().position(|known| known == *key).and_then(|at| teams.get(at));
            team.map_or(Meaning::Nothing, |team| Meaning::Chosen(Choice::Team(team.clone())))
        }
        Event::End(code) => Meaning::Chosen(Choice::Leave(*code)),
        Event::Stop | Event::Key(Key::Control('z')) => Meaning::Suspend,
        Event::GoOn | Event::Key(Key::Control('l')) => Meaning::Renew,
        _ => Meaning::Nothing,
    }
}

/// What has no room or no key is told of in the last line.
fn lines(teams: &[TeamName], manner: Manner, height: usize) -> Vec<String> {
    let room = height.saturating_sub(3).min(KEYS.len());
    let team = |(key, team): (char, &TeamName)| format!(" {key}  {}", manner.line(team.as_str()));
    let mut lines = vec!["Which team? Its key shows it, q leaves.".to_owned(), String::new()];
    lines.extend(KEYS.chars().zip(teams).map(team).take(room));
    match teams.len().saturating_sub(room) {
        0 => {}
        left => lines.push(format!("{left} more: teamctl top -t TEAM")),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manner::{Colors, Letters};

    fn teams(count: usize) -> Vec<TeamName> {
        (1..=count).map(|n| TeamName::parse(&format!("t{n}")).unwrap()).collect()
    }

    fn key(key: char) -> Event {
        Event::Key(Key::Char(key))
    }

    #[test]
    fn one_key_chooses_and_those_of_no_team_do_nothing() {
        let teams = teams(11);
        let chosen = |at: usize| Meaning::Chosen(Choice::Team(teams[at].clone()));
        assert_eq!((meaning(&key('1'), &teams), meaning(&key('b'), &teams)), (chosen(0), chosen(10)));
        for odd in ['0', 'c', 'K', '\u{e4}'] {
            assert_eq!(meaning(&key(odd), &teams), Meaning::Nothing);
        }
        assert_eq!(meaning(&Event::Paste("1".to_owned()), &teams), Meaning::Nothing);
        assert_eq!(meaning(&key('q'), &teams), Meaning::Chosen(Choice::Leave(0)));
        assert_eq!(meaning(&Event::End(143), &teams), Meaning::Chosen(Choice::Leave(143)));
    }

    #[test]
    fn those_without_room_or_a_key_are_told_of() {
        let manner = Manner { colors: Colors::None, letters: Letters::Ascii };
        let few = lines(&teams(2), manner, 10);
        assert_eq!(few[2..], [" 1  t1", " 2  t2"]);
        assert_eq!(lines(&teams(8), manner, 10).last().unwrap(), "1 more: teamctl top -t TEAM");
        assert_eq!(lines(&teams(40), manner, 90).last().unwrap(), "6 more: teamctl top -t TEAM");
    }
}
