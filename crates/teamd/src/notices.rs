//! Telling people what they have to know: that somebody waits for them, has died or is stuck, or that all is done. Once
//! for each, and what comes within a second of the last word in one word after it. What was not told yet is in the
//! roster, for the next daemon to tell; so is for a moment what is being told, and may be told twice where the daemon is killed
//! in that.

use protocol::member_request::MemberRequestKind;
use protocol::name::{AgentName, TeamName};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tmux::PaneId;

/// Between two words, ms.
const PAUSE: u64 = 1_000;
/// The longest name that is told whole.
const NAME: usize = 28;
/// So many teams are told by name: with theirs, the word is one that tmux shows.
const TEAMS: usize = 2;

/// What is to be told, and when.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    waiting: Vec<Notice>,
    /// On their way to those who are attached, word by word.
    under_way: VecDeque<Vec<Notice>>,
    /// What was not told is another than before.
    changed: bool,
    /// Not before, on the daemon's own clock, ms.
    quiet_until: u64,
}

/// What happened that needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum News {
    /// A member waits for an answer.
    Asks(MemberRequestKind),
    /// Its program waits at a dialog of its own.
    AtDialog,
    /// It died, and nothing follows.
    Died,
    /// It rests, and was not asked to.
    Rests,
    /// It is in a turn, and has written nothing for so long, ms.
    Stuck(u64),
    /// All tasks of the team are completed, so many.
    Done(usize),
    /// The team has used up what it may.
    Spent,
}

/// Something that is to be told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) team: TeamName,
    /// None: the whole team.
    who: Option<AgentName>,
    news: News,
    /// Where it is to be seen: whoever looks there needs not be told. The next daemon may find another pane of that number.
    #[serde(skip)]
    pane: Option<PaneId>,
}

/// A word to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Letters that steer neither terminal nor tmux.
    pub(crate) text: String,
    /// The panes that all of it is about; none where some of it is about no pane.
    pub(crate) panes: Vec<PaneId>,
}

impl Notices {
    /// Those that the daemon before did not come to tell.
    pub(crate) fn of(untold: impl Iterator<Item = Notice>) -> Notices {
        Notices { waiting: untold.collect(), ..Notices::default() }
    }

    /// Something is to be told of a member; `pane` is where it is to be seen.
    pub(crate) fn add(&mut self, team: &TeamName, who: &AgentName, pane: Option<PaneId>, news: News) {
        self.push(Notice { team: team.clone(), who: Some(who.clone()), news, pane });
    }

    /// All of a team is done.
    pub(crate) fn add_done(&mut self, team: &TeamName, tasks: usize) {
        self.push(Notice { team: team.clone(), who: None, news: News::Done(tasks), pane: None });
    }

    /// A team has nothing left to use up.
    pub(crate) fn add_spent(&mut self, team: &TeamName) {
        self.push(Notice { team: team.clone(), who: None, news: News::Spent, pane: None });
    }

    fn push(&mut self, notice: Notice) {
        self.waiting.push(notice);
        self.changed = true;
    }

    /// When something is to be told; none: nothing is.
    pub(crate) fn due(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.quiet_until)
    }

    /// The words, where their time has come.
    pub(crate) fn take(&mut self, now: u64) -> Option<Word> {
        if self.waiting.is_empty() || now < self.quiet_until {
            return None;
        }
        self.quiet_until = now + PAUSE;
        let waiting = std::mem::take(&mut self.waiting);
        let word = Word::of(&waiting);
        self.under_way.push_back(waiting);
        Some(word)
    }

    /// All that was not told, whatever the time: there is no later.
    pub(crate) fn take_last(&mut self) -> Option<Word> {
        let untold = self.untold();
        *self = Notices { changed: !untold.is_empty(), ..Notices::default() };
        (!untold.is_empty()).then(|| Word::of(&untold))
    }

    /// The first word that is under way was shown to those who are attached, or is rung.
    pub(crate) fn told(&mut self) {
        self.changed |= self.under_way.pop_front().is_some();
    }

    /// What the next daemon would have to tell.
    pub(crate) fn untold(&self) -> Vec<Notice> {
        self.under_way.iter().flatten().chain(&self.waiting).cloned().collect()
    }

    /// Whether that is another since it was asked last.
    pub(crate) fn have_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

impl Word {
    fn of(notices: &[Notice]) -> Word {
        let panes: Option<Vec<PaneId>> = notices.iter().map(|notice| notice.pane).collect();
        Word { text: words(notices), panes: panes.unwrap_or_default() }
    }
}

/// What several are told as: one of them, many of them, and which these are.
type Kind = (&'static str, &'static str, fn(&News) -> bool);

const KINDS: [Kind; 6] = [
    ("request waits for an answer", "requests wait for an answer", |n| matches!(n, News::Asks(_))),
    ("member is at a dialog", "members are at dialogs", |n| matches!(n, News::AtDialog)),
    ("member has ended", "members have ended", |n| matches!(n, News::Died | News::Rests)),
    ("member is stuck", "members are stuck", |n| matches!(n, News::Stuck(_))),
    ("budget is used up", "budgets are used up", |n| matches!(n, News::Spent)),
    ("team is done", "teams are done", |n| matches!(n, News::Done(_))),
];

/// Letters that mean nothing to a terminal, to tmux or to a shell alone: the names of others may hold any.
fn words(waiting: &[Notice]) -> String {
    match waiting {
        [one] => sentence(one),
        several => {
            let verb = match several.iter().all(|waiting| matches!(waiting.news, News::Asks(_))) {
                true => "requests",
                false => "status",
            };
            let told = KINDS.iter().filter_map(|(one, many, is)| {
                match several.iter().filter(|waiting| is(&waiting.news)).count() {
                    0 => None,
                    1 => Some(format!("1 {one}")),
                    count => Some(format!("{count} {many}")),
                }
            });
            let told = told.collect::<Vec<_>>().join(", ");
            format!("{told}: teamctl {verb} -t {}", of_teams(several))
        }
    }
}

fn of_teams(waiting: &[Notice]) -> String {
    let mut teams: Vec<&str> = waiting.iter().map(|waiting| waiting.team.as_str()).collect();
    teams.sort_unstable();
    teams.dedup();
    let more = if teams.len() > TEAMS { " and others" } else { "" };
    teams.truncate(TEAMS);
    format!("{}{more}", teams.join(" or "))
}

fn sentence(one: &Notice) -> String {
    let team = &one.team;
    let name = one.who.as_ref().map(|who| plain(who.as_str())).unwrap_or_default();
    // A name that had to be changed is nobody's.
    let known = one.who.as_ref().is_some_and(|who| who.as_str() == name);
    let next = |verb: &str| match known {
        true => format!("teamctl {verb} {name} -t {team}"),
        false => format!("teamctl status -t {team}"),
    };
    match one.news {
        News::Asks(MemberRequestKind::Plan) => {
            format!("{name}@{team} hands in a plan: teamctl requests -t {team}")
        }
        News::Asks(MemberRequestKind::Permission) => {
            format!("{name}@{team} asks for permission: teamctl requests -t {team}")
        }
        News::AtDialog => format!("{name}@{team} waits at a dialog: {}", next("attach")),
        News::Died => format!("{name}@{team} has ended: {}", next("why")),
        News::Rests => format!("{name}@{team} rests: teamctl up --resume -t {team}"),
        News::Stuck(ms) => {
            format!("{name}@{team} has written nothing for {} min: {}", ms / 60_000, next("why"))
        }
        News::Spent => format!("the budget of {team} is used up: teamctl status -t {team}"),
        News::Done(1) => format!("the one task of {team} is done: teamctl task list -t {team}"),
        News::Done(tasks) => format!("all {tasks} tasks of {team} are done: teamctl task list -t {team}"),
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

    const PLAN: News = News::Asks(MemberRequestKind::Plan);

    fn survey() -> TeamName {
        TeamName::parse("survey").unwrap()
    }

    fn add(notices: &mut Notices, from: &str, news: News) {
        let pane = from.starts_with('a').then(|| "%3".parse().unwrap());
        notices.add(&survey(), &AgentName::new_unchecked(from), pane, news);
    }

    fn told(notices: &mut Notices, now: u64) -> Option<String> {
        notices.take(now).map(|word| word.text)
    }

    #[test]
    fn the_first_is_told_at_once_and_what_follows_in_one_word() {
        let mut notices = Notices::default();
        assert_eq!((notices.due(), notices.take(5)), (None, None));
        add(&mut notices, "ann", PLAN);
        let word = notices.take(5).unwrap();
        assert_eq!(word.text, "ann@survey hands in a plan: teamctl requests -t survey");
        assert_eq!(word.panes, ["%3".parse().unwrap()]);
        add(&mut notices, "ann", PLAN);
        add(&mut notices, "bob", PLAN);
        assert_eq!((notices.take(1_004), notices.due()), (None, Some(1_005)));
        let both = notices.take(1_005).unwrap();
        assert_eq!(both.text, "2 requests wait for an answer: teamctl requests -t survey");
        assert!(both.panes.is_empty(), "bob is to be seen nowhere");
        assert_eq!(notices.due(), None);
    }

    #[test]
    fn each_news_names_what_to_type() {
        for (news, wanted) in [
            (News::AtDialog, "ann@survey waits at a dialog: teamctl attach ann -t survey"),
            (News::Died, "ann@survey has ended: teamctl why ann -t survey"),
            (News::Rests, "ann@survey rests: teamctl up --resume -t survey"),
            (News::Stuck(660_000), "ann@survey has written nothing for 11 min: teamctl why ann -t survey"),
        ] {
            let mut notices = Notices::default();
            add(&mut notices, "ann", news);
            assert_eq!(told(&mut notices, 0).as_deref(), Some(wanted));
        }
        let mut notices = Notices::default();
        notices.add_done(&survey(), 7);
        let done = "all 7 tasks of survey are done: teamctl task list -t survey";
        assert_eq!(told(&mut notices, 0).as_deref(), Some(done));
        for (from, news) in [("ann", News::Died), ("bob", News::Died), ("cat", PLAN)] {
            add(&mut notices, from, news);
        }
        let mixed = "1 request waits for an answer, 2 members have ended: teamctl status -t survey";
        assert_eq!(told(&mut notices, 5_000).as_deref(), Some(mixed));
    }

    #[test]
    fn a_name_steers_neither_terminal_nor_tmux() {
        let mut notices = Notices::default();
        add(&mut notices, "#(touch x)\u{1b}]0;%H$`;'", News::Died);
        let told = told(&mut notices, 0).unwrap();
        assert!(told.starts_with("touch_x___0__H____@survey "), "{told}");
        assert!(told.ends_with("teamctl status -t survey"), "{told}");
    }

    #[test]
    fn whoever_asks_the_word_is_one_that_tmux_shows() {
        let team = |n: usize| TeamName::parse(&format!("{n}{}", "t".repeat(63))).unwrap();
        for from in ["a".repeat(64), "_".repeat(64), "--x".to_owned(), "日本".to_owned(), "b".repeat(28)] {
            for news in [News::Asks(MemberRequestKind::Permission), News::Died, News::Stuck(u64::MAX)] {
                let mut notices = Notices::default();
                notices.add(&team(0), &AgentName::new_unchecked(&from), None, news);
                let told = told(&mut notices, 0).unwrap();
                let plain = told.starts_with(|c: char| c.is_ascii_alphanumeric());
                assert!(told.len() <= tmux::MAX_MESSAGE_BYTES && plain, "{} {told}", told.len());
            }
        }
        let mut notices = Notices::default();
        for (n, news) in
            [PLAN, News::AtDialog, News::Died, News::Stuck(1), News::Died].into_iter().enumerate()
        {
            notices.add(&team(n), &AgentName::new_unchecked("ann"), None, news);
            notices.add(&team(n), &AgentName::new_unchecked("bob"), None, news);
        }
        (0..10).for_each(|n| notices.add_done(&team(n), 3));
        let told = told(&mut notices, 0).unwrap();
        assert!(
            told.len() <= tmux::MAX_MESSAGE_BYTES && told.ends_with(" and others"),
            "{} {told}",
            told.len()
        );
    }
}
