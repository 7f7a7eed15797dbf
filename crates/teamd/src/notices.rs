//! Telling people that somebody waits for them: once for each request, and what comes within a second of the last
//! word in one word after it.

use protocol::asked::AskedKind;
use protocol::name::{AgentName, TeamName};

/// Between two words, ms.
const PAUSE: u64 = 1_000;
/// The longest name that is told whole.
const NAME: usize = 28;
/// So many teams are told by name: with theirs, the word is one that tmux shows.
const TEAMS: usize = 2;

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
            let more = if teams.len() > TEAMS { " and others" } else { "" };
            teams.truncate(TEAMS);
            let (many, teams) = (several.len(), teams.join(" or "));
            format!("{many} requests wait for an answer: teamctl requests -t {teams}{more}")
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
    // tmux would take what begins with a dash for an option.
    let plain: String =
        name.chars().map(letter).skip_while(|c| !c.is_ascii_alphanumeric()).take(NAME).collect();
    if plain.is_empty() { "somebody".to_owned() } else { plain }
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
        assert!(told.starts_with("touch_x___0__H____@survey "), "{told}");
    }

    #[test]
    fn whoever_asks_the_word_is_one_that_tmux_shows() {
        let team = |n: usize| TeamName::parse(&format!("{n}{}", "t".repeat(63))).unwrap();
        for from in ["a".repeat(64), "_".repeat(64), "--x".to_owned(), "日本".to_owned()] {
            let mut notices = Notices::default();
            notices.add(&team(0), &AgentName::foreign(&from), AskedKind::Permission);
            let told = notices.take(0).unwrap();
            assert!(told.len() <= 200 && told.starts_with(|c: char| c.is_ascii_alphanumeric()), "{told}");
        }
        let mut notices = Notices::default();
        (0..5).for_each(|n| notices.add(&team(n), &AgentName::foreign("ann"), AskedKind::Plan));
        let told = notices.take(0).unwrap();
        assert!(told.len() <= 200 && told.ends_with(" and others"), "{told}");
    }
}
