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
const MIN_INTERVAL: u64 = 1_000;
/// The longest name that is told whole.
const MAX_NAME: usize = 28;
/// So many teams are told by name: with theirs, the word is one that tmux shows.
const MAX_TEAMS: usize = 2;

/// What is to be told, and when.
#[derive(Debug, Default)]
pub(crate) struct NoticeQueue {
    waiting: Vec<Notice>,
    /// On their way to those who are attached, word by word.
    being_shown: VecDeque<Vec<Notice>>,
    /// What was not told is another than before.
    has_changed: bool,
    /// Not before, on the daemon's own clock, ms.
    quiet_until: u64,
}

/// What happened that needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoticeKind {
    /// A member waits for an answer.
    #[serde(rename = "asks")]
    RequestWaiting(MemberRequestKind),
    /// Its program waits at a dialog of its own.
    AtDialog,
    /// It died, and nothing follows.
    #[serde(rename = "died")]
    Exited,
    /// It rests, and was not asked to.
    #[serde(rename = "rests")]
    Suspended,
    /// It is in a turn, and has written nothing for so long, ms.
    #[serde(rename = "stuck")]
    NoOutput(u64),
    /// All tasks of the team are completed, so many.
    #[serde(rename = "done")]
    AllTasksDone(usize),
    /// The team has used up what it may.
    #[serde(rename = "spent")]
    BudgetExhausted,
}

/// Something that is to be told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) team: TeamName,
    /// None: the whole team.
    #[serde(rename = "who")]
    member: Option<AgentName>,
    #[serde(rename = "news")]
    kind: NoticeKind,
    /// Where it is to be seen: whoever looks there needs not be told. The next daemon may find another pane of that number.
    #[serde(skip)]
    pane: Option<PaneId>,
}

/// A word to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoticeText {
    /// Letters that steer neither terminal nor tmux.
    pub(crate) text: String,
    /// The panes that all of it is about; none where some of it is about no pane.
    pub(crate) panes: Vec<PaneId>,
}

impl NoticeQueue {
    /// Those that the daemon before did not come to tell.
    pub(crate) fn from_saved(untold: impl Iterator<Item = Notice>) -> NoticeQueue {
        NoticeQueue { waiting: untold.collect(), ..NoticeQueue::default() }
    }

    /// Something is to be told of a member; `pane` is where it is to be seen.
    pub(crate) fn add(&mut self, team: &TeamName, who: &AgentName, pane: Option<PaneId>, news: NoticeKind) {
        self.push(Notice { team: team.clone(), member: Some(who.clone()), kind: news, pane });
    }

    /// All of a team is done.
    pub(crate) fn add_all_tasks_done(&mut self, team: &TeamName, tasks: usize) {
        self.push(Notice {
            team: team.clone(),
            member: None,
            kind: NoticeKind::AllTasksDone(tasks),
            pane: None,
        });
    }

    /// A team has nothing left to use up.
    pub(crate) fn add_budget_exhausted(&mut self, team: &TeamName) {
        self.push(Notice { team: team.clone(), member: None, kind: NoticeKind::BudgetExhausted, pane: None });
    }

    fn push(&mut self, notice: Notice) {
        self.waiting.push(notice);
        self.has_changed = true;
    }

    /// When something is to be told; none: nothing is.
    pub(crate) fn next_due(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.quiet_until)
    }

    /// The words, where their time has come.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<NoticeText> {
        if self.waiting.is_empty() || now < self.quiet_until {
            return None;
        }
        self.quiet_until = now + MIN_INTERVAL;
        let waiting = std::mem::take(&mut self.waiting);
        let word = NoticeText::from_notices(&waiting);
        self.being_shown.push_back(waiting);
        Some(word)
    }

    /// All that was not told, whatever the time: there is no later.
    pub(crate) fn take_all(&mut self) -> Option<NoticeText> {
        let untold = self.pending();
        *self = NoticeQueue { has_changed: !untold.is_empty(), ..NoticeQueue::default() };
        (!untold.is_empty()).then(|| NoticeText::from_notices(&untold))
    }

    /// The first word that is under way was shown to those who are attached, or is rung.
    pub(crate) fn confirm_shown(&mut self) {
        self.has_changed |= self.being_shown.pop_front().is_some();
    }

    /// What the next daemon would have to tell.
    pub(crate) fn pending(&self) -> Vec<Notice> {
        self.being_shown.iter().flatten().chain(&self.waiting).cloned().collect()
    }

    /// Whether that is another since it was asked last.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}

impl NoticeText {
    fn from_notices(notices: &[Notice]) -> NoticeText {
        let panes: Option<Vec<PaneId>> = notices.iter().map(|notice| notice.pane).collect();
        NoticeText { text: compose_text(notices), panes: panes.unwrap_or_default() }
    }
}

/// What several are told as: one of them, many of them, and which these are.
type SummaryRule = (&'static str, &'static str, fn(&NoticeKind) -> bool);

const SUMMARY_RULES: [SummaryRule; 6] = [
    ("request waits for an answer", "requests wait for an answer", |n| {
        matches!(n, NoticeKind::RequestWaiting(_))
    }),
    ("member is at a dialog", "members are at dialogs", |n| matches!(n, NoticeKind::AtDialog)),
    ("member has ended", "members have ended", |n| matches!(n, NoticeKind::Exited | NoticeKind::Suspended)),
    ("member is stuck", "members are stuck", |n| matches!(n, NoticeKind::NoOutput(_))),
    ("budget is used up", "budgets are used up", |n| matches!(n, NoticeKind::BudgetExhausted)),
    ("team is done", "teams are done", |n| matches!(n, NoticeKind::AllTasksDone(_))),
];

/// Letters that mean nothing to a terminal, to tmux or to a shell alone: the names of others may hold any.
fn compose_text(waiting: &[Notice]) -> String {
    match waiting {
        [one] => describe(one),
        several => {
            let verb =
                match several.iter().all(|waiting| matches!(waiting.kind, NoticeKind::RequestWaiting(_))) {
                    true => "requests",
                    false => "status",
                };
            let told = SUMMARY_RULES.iter().filter_map(|(one, many, is)| {
                match several.iter().filter(|waiting| is(&waiting.kind)).count() {
                    0 => None,
                    1 => Some(format!("1 {one}")),
                    count => Some(format!("{count} {many}")),
                }
            });
            let told = told.collect::<Vec<_>>().join(", ");
            format!("{told}: teamctl {verb} -t {}", list_teams(several))
        }
    }
}

fn list_teams(waiting: &[Notice]) -> String {
    let mut teams: Vec<&str> = waiting.iter().map(|waiting| waiting.team.as_str()).collect();
    teams.sort_unstable();
    teams.dedup();
    let more = if teams.len() > MAX_TEAMS { " and others" } else { "" };
    teams.truncate(MAX_TEAMS);
    format!("{}{more}", teams.join(" or "))
}

fn describe(one: &Notice) -> String {
    let team = &one.team;
    let name = one.member.as_ref().map(|who| sanitize_name(who.as_str())).unwrap_or_default();
    // A name that had to be changed is nobody's.
    let known = one.member.as_ref().is_some_and(|who| who.as_str() == name);
    let next = |verb: &str| match known {
        true => format!("teamctl {verb} {name} -t {team}"),
        false => format!("teamctl status -t {team}"),
    };
    match one.kind {
        NoticeKind::RequestWaiting(MemberRequestKind::Plan) => {
            format!("{name}@{team} hands in a plan: teamctl requests -t {team}")
        }
        NoticeKind::RequestWaiting(MemberRequestKind::Permission) => {
            format!("{name}@{team} asks for permission: teamctl requests -t {team}")
        }
        NoticeKind::AtDialog => format!("{name}@{team} waits at a dialog: {}", next("attach")),
        NoticeKind::Exited => format!("{name}@{team} has ended: {}", next("why")),
        NoticeKind::Suspended => format!("{name}@{team} rests: teamctl up --resume -t {team}"),
        NoticeKind::NoOutput(ms) => {
            format!("{name}@{team} has written nothing for {} min: {}", ms / 60_000, next("why"))
        }
        NoticeKind::BudgetExhausted => format!("the budget of {team} is used up: teamctl status -t {team}"),
        NoticeKind::AllTasksDone(1) => format!("the one task of {team} is done: teamctl task list -t {team}"),
        NoticeKind::AllTasksDone(tasks) => {
            format!("all {tasks} tasks of {team} are done: teamctl task list -t {team}")
        }
    }
}

fn sanitize_name(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    // tmux would take what begins with a dash for an option.
    let plain: String =
        name.chars().map(letter).skip_while(|c| !c.is_ascii_alphanumeric()).take(MAX_NAME).collect();
    if plain.is_empty() { "somebody".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: NoticeKind = NoticeKind::RequestWaiting(MemberRequestKind::Plan);

    fn survey() -> TeamName {
        TeamName::parse("survey").unwrap()
    }

    fn add(notices: &mut NoticeQueue, from: &str, news: NoticeKind) {
        let pane = from.starts_with('a').then(|| "%3".parse().unwrap());
        notices.add(&survey(), &AgentName::new_unchecked(from), pane, news);
    }

    fn take_text(notices: &mut NoticeQueue, now: u64) -> Option<String> {
        notices.take_due(now).map(|word| word.text)
    }

    #[test]
    fn the_first_is_told_at_once_and_what_follows_in_one_word() {
        let mut notices = NoticeQueue::default();
        assert_eq!((notices.next_due(), notices.take_due(5)), (None, None));
        add(&mut notices, "ann", PLAN);
        let word = notices.take_due(5).unwrap();
        assert_eq!(word.text, "ann@survey hands in a plan: teamctl requests -t survey");
        assert_eq!(word.panes, ["%3".parse().unwrap()]);
        add(&mut notices, "ann", PLAN);
        add(&mut notices, "bob", PLAN);
        assert_eq!((notices.take_due(1_004), notices.next_due()), (None, Some(1_005)));
        let both = notices.take_due(1_005).unwrap();
        assert_eq!(both.text, "2 requests wait for an answer: teamctl requests -t survey");
        assert!(both.panes.is_empty(), "bob is to be seen nowhere");
        assert_eq!(notices.next_due(), None);
    }

    #[test]
    fn each_news_names_what_to_type() {
        for (news, wanted) in [
            (NoticeKind::AtDialog, "ann@survey waits at a dialog: teamctl attach ann -t survey"),
            (NoticeKind::Exited, "ann@survey has ended: teamctl why ann -t survey"),
            (NoticeKind::Suspended, "ann@survey rests: teamctl up --resume -t survey"),
            (
                NoticeKind::NoOutput(660_000),
                "ann@survey has written nothing for 11 min: teamctl why ann -t survey",
            ),
        ] {
            let mut notices = NoticeQueue::default();
            add(&mut notices, "ann", news);
            assert_eq!(take_text(&mut notices, 0).as_deref(), Some(wanted));
        }
        let mut notices = NoticeQueue::default();
        notices.add_all_tasks_done(&survey(), 7);
        let done = "all 7 tasks of survey are done: teamctl task list -t survey";
        assert_eq!(take_text(&mut notices, 0).as_deref(), Some(done));
        for (from, news) in [("ann", NoticeKind::Exited), ("bob", NoticeKind::Exited), ("cat", PLAN)] {
            add(&mut notices, from, news);
        }
        let mixed = "1 request waits for an answer, 2 members have ended: teamctl status -t survey";
        assert_eq!(take_text(&mut notices, 5_000).as_deref(), Some(mixed));
    }

    #[test]
    fn a_name_steers_neither_terminal_nor_tmux() {
        let mut notices = NoticeQueue::default();
        add(&mut notices, "#(touch x)\u{1b}]0;%H$`;'", NoticeKind::Exited);
        let told = take_text(&mut notices, 0).unwrap();
        assert!(told.starts_with("touch_x___0__H____@survey "), "{told}");
        assert!(told.ends_with("teamctl status -t survey"), "{told}");
    }

    #[test]
    fn whoever_asks_the_word_is_one_that_tmux_shows() {
        let team = |n: usize| TeamName::parse(&format!("{n}{}", "t".repeat(63))).unwrap();
        for from in ["a".repeat(64), "_".repeat(64), "--x".to_owned(), "日本".to_owned(), "b".repeat(28)] {
            for news in [
                NoticeKind::RequestWaiting(MemberRequestKind::Permission),
                NoticeKind::Exited,
                NoticeKind::NoOutput(u64::MAX),
            ] {
                let mut notices = NoticeQueue::default();
                notices.add(&team(0), &AgentName::new_unchecked(&from), None, news);
                let told = take_text(&mut notices, 0).unwrap();
                let plain = told.starts_with(|c: char| c.is_ascii_alphanumeric());
                assert!(told.len() <= tmux::MAX_MESSAGE_BYTES && plain, "{} {told}", told.len());
            }
        }
        let mut notices = NoticeQueue::default();
        for (n, news) in
            [PLAN, NoticeKind::AtDialog, NoticeKind::Exited, NoticeKind::NoOutput(1), NoticeKind::Exited]
                .into_iter()
                .enumerate()
        {
            notices.add(&team(n), &AgentName::new_unchecked("ann"), None, news);
            notices.add(&team(n), &AgentName::new_unchecked("bob"), None, news);
        }
        (0..10).for_each(|n| notices.add_all_tasks_done(&team(n), 3));
        let told = take_text(&mut notices, 0).unwrap();
        assert!(
            told.len() <= tmux::MAX_MESSAGE_BYTES && told.ends_with(" and others"),
            "{} {told}",
            told.len()
        );
    }
}
