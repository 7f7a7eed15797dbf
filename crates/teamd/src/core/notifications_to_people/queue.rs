//! The queue of notices, which decides when each is shown. A notice tells people about a member or
//! a team: for example, that an agent has exited, or that all tasks are completed.
//!
//! The first notice is shown immediately. The notices of the following second are shown together,
//! as one text.
//!
//! The roster keeps each notice until it was shown, so that the next daemon can show it. Only after
//! a crash, a notice may be shown twice.

use crate::core::notifications_to_people::compose_text::compose_text;
use crate::core::notifications_to_people::notice::{Notice, NoticeKind};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::VecDeque;
use tmux::PaneId;

/// The shortest time between two texts, in milliseconds.
const MIN_INTERVAL: u64 = 1_000;
/// How long a text waits for the suspensions of other members, in milliseconds.
const COLLECT_INTERVAL: u64 = 500;

/// The notices that were not shown yet, and when the next text may be shown.
#[derive(Debug, Default)]
pub(crate) struct NoticeQueue {
    waiting: Vec<Notice>,
    /// Notices that are being shown, one list for each text.
    being_shown: VecDeque<Vec<Notice>>,
    /// Whether the list of notices for the roster has changed.
    has_changed: bool,
    /// When the next text may be shown, in milliseconds on the monotonic clock.
    quiet_until: u64,
    /// When the text about suspended members is shown, in milliseconds on the monotonic clock.
    /// `None` if there is no text about suspended members. The text is not shown at once: when a
    /// tmux server ends, the members in its panes are suspended one after the other, and one text
    /// is to name them all.
    collects_until: Option<u64>,
}

/// The text of one or more notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoticeText {
    /// The text, without control characters.
    pub(crate) text: String,
    /// The panes in which people can see the causes of the notices. A tmux client that shows one of
    /// these panes does not get the text. If a cause has no pane, this list is empty, and all
    /// clients get the text.
    pub(crate) panes: Vec<PaneId>,
}

impl NoticeQueue {
    /// The notices that the last daemon did not show.
    pub(crate) fn from_saved(notices: impl Iterator<Item = Notice>) -> NoticeQueue {
        NoticeQueue { waiting: notices.collect(), ..NoticeQueue::default() }
    }

    /// Adds a notice about a member. `pane` is where the cause can be seen.
    pub(crate) fn add(
        &mut self,
        team: &TeamName,
        member: &MemberName,
        pane: Option<PaneId>,
        kind: NoticeKind,
    ) {
        self.push(Notice { team: team.clone(), member: Some(member.clone()), kind, pane });
    }

    /// Adds a notice that all tasks of a team are completed.
    pub(crate) fn add_all_tasks_done(&mut self, team: &TeamName, tasks: usize) {
        self.add_for_team(team, NoticeKind::AllTasksDone(tasks));
    }

    /// Adds a notice that a budget is exhausted.
    pub(crate) fn add_budget_exhausted(&mut self, team: &TeamName) {
        self.add_for_team(team, NoticeKind::BudgetExhausted);
    }

    /// Adds a notice that the session that led a team has ended.
    pub(crate) fn add_lead_session_ended(&mut self, team: &TeamName) {
        self.add_for_team(team, NoticeKind::LeadSessionEnded);
    }

    /// Adds a notice about a whole team.
    pub(crate) fn add_for_team(&mut self, team: &TeamName, kind: NoticeKind) {
        self.push(Notice { team: team.clone(), member: None, kind, pane: None });
    }

    fn push(&mut self, notice: Notice) {
        self.waiting.push(notice);
        self.has_changed = true;
    }

    /// Removes the waiting notices for which `is_kept` is false.
    pub(crate) fn retain(&mut self, is_kept: impl FnMut(&Notice) -> bool) {
        let count = self.waiting.len();
        self.waiting.retain(is_kept);
        self.has_changed |= self.waiting.len() < count;
    }

    /// When the next text is due, in milliseconds on the monotonic clock. `None` without notices.
    pub(crate) fn next_due(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.quiet_until.max(self.collects_until.unwrap_or(0)))
    }

    /// Takes the next text, if it is due.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<NoticeText> {
        if self.next_due().is_none_or(|due| now < due) {
            return None;
        }
        let has_suspensions = self.waiting.iter().any(|notice| notice.kind == NoticeKind::Suspended);
        if has_suspensions && self.collects_until.is_none() {
            self.collects_until = Some(now + COLLECT_INTERVAL);
            return None;
        }
        self.collects_until = None;
        self.quiet_until = now + MIN_INTERVAL;
        let waiting = std::mem::take(&mut self.waiting);
        let text = NoticeText::from_notices(&waiting);
        self.being_shown.push_back(waiting);
        Some(text)
    }

    /// Takes all notices as one text, whether due or not, because the daemon ends.
    pub(crate) fn take_all(&mut self) -> Option<NoticeText> {
        let notices = self.pending();
        *self = NoticeQueue { has_changed: !notices.is_empty(), ..NoticeQueue::default() };
        (!notices.is_empty()).then(|| NoticeText::from_notices(&notices))
    }

    /// Confirms that the oldest text was shown.
    pub(crate) fn confirm_shown(&mut self) {
        self.has_changed |= self.being_shown.pop_front().is_some();
    }

    /// The notices for the roster.
    pub(crate) fn pending(&self) -> Vec<Notice> {
        self.being_shown.iter().flatten().chain(&self.waiting).cloned().collect()
    }

    /// Whether the notices for the roster have changed since the last call.
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

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::member_request::MemberRequestKind;

    const PLAN: NoticeKind = NoticeKind::RequestWaiting(MemberRequestKind::Plan);

    fn survey() -> TeamName {
        TeamName::parse("survey").unwrap()
    }

    fn add(notices: &mut NoticeQueue, from: &str, kind: NoticeKind) {
        let pane = from.starts_with('a').then(|| "%3".parse().unwrap());
        notices.add(&survey(), &MemberName::new_unchecked(from), pane, kind);
    }

    /// Returns the text that is due at time 0. If there is none, returns the text that is due
    /// `COLLECT_INTERVAL` later: a text about suspended members is held back for this time.
    fn take_collected(notices: &mut NoticeQueue) -> Option<String> {
        take_text(notices, 0).or_else(|| take_text(notices, COLLECT_INTERVAL))
    }

    fn take_text(notices: &mut NoticeQueue, now: u64) -> Option<String> {
        notices.take_due(now).map(|notice| notice.text)
    }

    #[test]
    fn first_notice_is_due_at_once_and_later_ones_are_combined() {
        let mut notices = NoticeQueue::default();
        assert_eq!((notices.next_due(), notices.take_due(5)), (None, None));
        add(&mut notices, "ann", PLAN);
        let notice = notices.take_due(5).unwrap();
        assert_eq!(notice.text, "ann@survey submits a plan: teamctl requests -t survey");
        assert_eq!(notice.panes, ["%3".parse().unwrap()]);
        add(&mut notices, "ann", PLAN);
        add(&mut notices, "bob", PLAN);
        assert_eq!((notices.take_due(1_004), notices.next_due()), (None, Some(1_005)));
        let both = notices.take_due(1_005).unwrap();
        assert_eq!(both.text, "2 requests wait for an answer: teamctl requests -t survey");
        assert!(both.panes.is_empty(), "bob has no pane");
        assert_eq!(notices.next_due(), None);
    }

    #[test]
    fn each_notice_names_a_command() {
        for (kind, expected) in [
            (NoticeKind::AtDialog, "ann@survey waits at a dialog: teamctl attach ann -t survey"),
            (NoticeKind::Exited, "ann@survey has ended: teamctl why ann -t survey"),
            (NoticeKind::Suspended, "ann@survey is suspended: teamctl up --resume -t survey"),
            (
                NoticeKind::NoOutput(660_000),
                "ann@survey has written nothing for 11 min: teamctl why ann -t survey",
            ),
            (
                NoticeKind::TurnsFailed { count: 3, reason: "exit 1: limit #(x)".to_owned() },
                "ann@survey fails: 3 turns in a row (exit 1: limit __x_): teamctl why ann -t survey",
            ),
            (
                NoticeKind::Limited { local_time: "11-29 15:00".to_owned() },
                "ann@survey is limited until 11-29 15:00: teamctl why ann -t survey",
            ),
        ] {
            let mut notices = NoticeQueue::default();
            add(&mut notices, "ann", kind);
            assert_eq!(take_collected(&mut notices).as_deref(), Some(expected));
        }
        let mut notices = NoticeQueue::default();
        notices.add_all_tasks_done(&survey(), 7);
        let done = "all 7 tasks of survey are done";
        assert_eq!(take_text(&mut notices, 0).as_deref(), Some(done));
        for (from, kind) in [("ann", NoticeKind::Exited), ("bob", NoticeKind::Exited), ("cat", PLAN)] {
            add(&mut notices, from, kind);
        }
        let mixed = "1 request waits for an answer, 2 members have ended: teamctl status -t survey";
        assert_eq!(take_text(&mut notices, 5_000).as_deref(), Some(mixed));
    }

    #[test]
    fn suspensions_are_collected_into_one_text_with_names() {
        let mut notices = NoticeQueue::default();
        add(&mut notices, "ann", NoticeKind::Suspended);
        assert_eq!((take_text(&mut notices, 10), notices.next_due()), (None, Some(10 + COLLECT_INTERVAL)));
        for name in ["bob", "cat", "dan", "eve", "fay"] {
            add(&mut notices, name, NoticeKind::Suspended);
        }
        assert_eq!(take_text(&mut notices, 11), None);
        let text = take_text(&mut notices, 10 + COLLECT_INTERVAL).unwrap();
        assert_eq!(
            text,
            "ann, bob, cat, dan and 2 others of survey are suspended: teamctl up --resume -t survey"
        );
        assert!(tmux::is_valid_message(&text));
    }

    #[test]
    fn special_characters_of_a_name_are_replaced_in_a_notice() {
        let mut notices = NoticeQueue::default();
        add(&mut notices, "#(touch x)\u{1b}]0;%H$`;'", NoticeKind::Exited);
        let text = take_text(&mut notices, 0).unwrap();
        assert!(text.starts_with("touch_x___0__H____@survey "), "{text}");
        assert!(text.ends_with("teamctl status -t survey"), "{text}");
    }

    #[test]
    fn text_of_each_notice_is_valid_for_tmux() {
        let team = |n: usize| TeamName::parse(&format!("{n}{}", "t".repeat(63))).unwrap();
        for from in ["a".repeat(64), "_".repeat(64), "--x".to_owned(), "日本".to_owned(), "b".repeat(28)] {
            for kind in [
                NoticeKind::RequestWaiting(MemberRequestKind::Permission),
                NoticeKind::AtDialog,
                NoticeKind::Exited,
                NoticeKind::Suspended,
                NoticeKind::NoOutput(u64::MAX),
                NoticeKind::TurnsFailed { count: u32::MAX, reason: "日本 $(x)".repeat(20) },
                NoticeKind::Limited { local_time: "日本 #(x)".repeat(20) },
                NoticeKind::ExchangePaused { with: MemberName::new_unchecked("-b#(x)"), turns: 30 },
                NoticeKind::BudgetExhausted,
                NoticeKind::LeadSessionEnded,
                NoticeKind::HomeReplaced,
                NoticeKind::TwoHomes,
            ] {
                let mut notices = NoticeQueue::default();
                notices.add(&team(0), &MemberName::new_unchecked(&from), None, kind);
                let text = take_collected(&mut notices).unwrap();
                assert!(tmux::is_valid_message(&text), "{} {text}", text.len());
            }
        }
        let mut notices = NoticeQueue::default();
        for (n, kind) in
            [PLAN, NoticeKind::AtDialog, NoticeKind::Exited, NoticeKind::NoOutput(1), NoticeKind::Exited]
                .into_iter()
                .enumerate()
        {
            notices.add(&team(n), &MemberName::new_unchecked("ann"), None, kind.clone());
            notices.add(&team(n), &MemberName::new_unchecked("bob"), None, kind);
        }
        (0..10).for_each(|n| notices.add_all_tasks_done(&team(n), 3));
        let text = take_text(&mut notices, 0).unwrap();
        assert!(
            text.len() <= tmux::MAX_MESSAGE_BYTES && text.ends_with(" and others"),
            "{} {text}",
            text.len()
        );
    }
}
