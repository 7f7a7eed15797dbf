//! Telling people that somebody waits for them: once for each request, and what comes within a second of the last
//! word in one word after it.

use protocol::asked::AskedKind;
use protocol::name::{AgentName, TeamName};

/// Between two words, ms.
const PAUSE: u64 = 1_000;
/// The longest name that is told whole.
const NAME: usize = 64;

/// What is to be told, and when.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    waiting: Vec<Waiting>,
    /// Not before, on the daemon's own clock, ms.
    quiet_until: u64,
}

#[derive(Debug)]
struct Waiting {
    team: TeamName,
    from: AgentName,
    kind: AskedKind,
}

impl Notices {
    /// Somebody waits for an answer.
    pub(crate) fn add(&mut self, team: &TeamName, from: &AgentName, kind: AskedKind) {
        self.waiting.push(Waiting { team: team.clone(), from: from.clone(), kind });
    }

    /// When something is to be told; none: nothing is.
    pub(crate) fn due(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.quiet_until)
    }

    /// The words, where their time has come.
    pub(crate) fn take(&mut self, now: u64) -> Option<String> {
        if self.waiting.is_empty() || now < self.quiet_until {
            return None;
        }
        self.quiet_until = now + PAUSE;
        Some(words(&std::mem::take(&mut self.waiting)))
    }
}

/// Letters that mean nothing to a terminal, to tmux or to a shell alone: the names of others may hold any.
fn words(waiting: &[Waiting]) -> String {
    match waiting {
        [one] => {
            let (from, what) = (plain(one.from.as_str()), what(one.kind));
            format!("{from}@{team} {what}: teamctl requests -t {team}", team = one.team)
        }
        several => {
            let mut teams: Vec<&str> = several.iter().map(|waiting| waiting.team.as_str()).collect();
            teams.sort_unstable();
            teams.dedup();
            format!(
                "{} requests wait for an answer: teamctl requests -t {}",
                several.len(),
                teams.join(" or ")
            )
        }
    }
}

fn what(kind: AskedKind) -> &'static str {
    match kind {
        AskedKind::Plan => "hands in a plan",
        AskedKind::Permission => "asks for permission",
    }
}

fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    name.chars().take(NAME).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(notices: &mut Notices, from: &str) {
        let team = TeamName::parse("survey").unwrap();
        notices.add(&team, &AgentName::foreign(from), AskedKind::Plan);
    }

    #[test]
    fn the_first_is_told_at_once_and_what_follows_in_one_word() {
        let mut notices = Notices::default();
        assert_eq!((notices.due(), notices.take(5)), (None, None));
        add(&mut notices, "ann");
        assert_eq!(
            notices.take(5).as_deref(),
            Some("ann@survey hands in a plan: teamctl requests -t survey")
        );
        add(&mut notices, "bob");
        add(&mut notices, "cat");
        assert_eq!((notices.take(1_004), notices.due()), (None, Some(1_005)));
        let both = notices.take(1_005);
        assert_eq!(both.as_deref(), Some("2 requests wait for an answer: teamctl requests -t survey"));
        assert_eq!(notices.due(), None);
    }

    #[test]
    fn a_name_steers_neither_terminal_nor_tmux() {
        let mut notices = Notices::default();
        add(&mut notices, "#(touch x)\u{1b}]0;%H$`;'");
        let told = notices.take(0).unwrap();
        assert!(told.starts_with("__touch_x___0__H____@survey "), "{told}");
    }
}
