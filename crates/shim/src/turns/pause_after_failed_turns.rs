//! The pauses after failed turns. A program that cannot work, for example because of a usage limit,
//! would otherwise fail at one message or task after another within seconds.
//!
//! Each further failure in a row doubles the pause, up to 15 minutes. After [`MAX_FAILED_TURNS`]
//! the agent waits for a message of a person or of the lead. Such a message also ends a pause
//! early, because its sender may have removed the cause.
//!
//! The tasks of the first [`FAILURES_BEFORE_TASK_RETRY`] failed turns in a row are marked failed.
//! If more turns fail, the program itself is probably the cause. So the agent then tries the same
//! task again when the pause ends. This task is marked failed only after [`MAX_TASK_ATTEMPTS`]
//! failed turns on it, or when the agent begins to wait for a message.
//!
//! If the program has said when its usage limit ends, the pause lasts at least until then. Then the
//! agent tries the same message or task again, because neither has caused the failure.

use protocol::control_socket::{FailedTurnsPause, UsageLimit};
use protocol::member_task_and_request_ids::TaskId;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The pause after the first failed turn, without jitter.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause, without jitter.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);
/// After this many failed turns in a row, only a message of a person or of the lead starts a
/// further turn. Until then, the pauses take about six hours in total, which is longer than the
/// five-hour usage limits of agent programs.
const MAX_FAILED_TURNS: u32 = 33;
/// After this many failed turns in a row, a further failed turn no longer marks its task failed,
/// because the program itself is probably the cause. Instead, the agent tries the same task again,
/// until [`MAX_TASK_ATTEMPTS`] turns on it have failed. Otherwise a program that cannot work would
/// fail every task.
const FAILURES_BEFORE_TASK_RETRY: u32 = 1;
/// How many turns on one task may fail in a row until the task is marked failed. The limit is
/// needed because the task itself may be the cause.
const MAX_TASK_ATTEMPTS: u32 = 5;
/// After the end of a usage limit, each agent waits for a random time, the jitter, so that several
/// agents do not start at the same moment. This constant is the longest jitter in milliseconds. For
/// a short limit the jitter is shorter: at most half of the time until the limit ends.
const LONGEST_LIMIT_JITTER: u64 = 2 * 60_000;
/// Two usage limits count as the same if their ends differ by at most this much, in milliseconds. A
/// program that reports the remaining time rounds it, so the end of one limit varies.
const SAME_LIMIT_MS: u64 = 2 * 60_000;

/// The failed turns in a row. An interrupted turn neither lengthens nor ends the streak.
#[derive(Debug, Default)]
pub(super) struct FailureStreak {
    failed_turns: u32,
    pause: Option<Pause>,
    /// The messages of a person or of the lead that were unread when the last turn started.
    known_messages: BTreeSet<u64>,
    /// The task that failed last, and how many turns on it have failed in a row.
    last_task: Option<(TaskId, u32)>,
    /// The usage limit of the last turn that failed at one.
    last_limit: Option<UsageLimit>,
}

/// Until when no turn starts.
#[derive(Debug)]
enum Pause {
    /// The end of the pause: `instant` on the monotonic clock, `wall_ms` on the wall clock, in
    /// milliseconds since the epoch. The pause ends as soon as one of the two clocks reaches its
    /// value, because each clock can be late: the monotonic clock stands still while the machine
    /// sleeps, and the wall clock can be set back.
    Until {
        instant: Instant,
        wall_ms: u64,
    },
    UntilMessage,
}

impl FailureStreak {
    /// Records that a turn starts, and ends the pause. `unread_messages` are the messages of a
    /// person or of the lead that are unread now. If the turn fails, only a newer message than
    /// these ends the next pause early.
    pub(super) fn begin_turn(&mut self, unread_messages: BTreeSet<u64>) {
        (self.pause, self.known_messages) = (None, unread_messages);
    }

    /// Records a turn that has not failed.
    pub(super) fn end(&mut self) {
        (self.failed_turns, self.last_task, self.last_limit) = (0, None, None);
    }

    /// Records a failed turn, and begins a pause. Returns the pause, for the status report to the
    /// daemon. `limit` is the usage limit that the program has reported. `now` is in milliseconds
    /// since the epoch.
    pub(super) fn add_failure(
        &mut self,
        reason: String,
        limit: Option<UsageLimit>,
        now: u64,
    ) -> FailedTurnsPause {
        self.failed_turns += 1;
        let limit = limit.map(|limit| self.count_tries(limit));
        let limit_wait = limit.as_ref().map(|limit| limit_wait(limit.until, now, fastrand::f64()));
        let length = pause_length(self.failed_turns, fastrand::f64())
            .map(|backoff| backoff.max(limit_wait.unwrap_or_default()));
        let pause_end = length.map(|length| now + u64::try_from(length.as_millis()).unwrap_or(0));
        self.pause = Some(match (length, pause_end) {
            (Some(length), Some(wall_ms)) => Pause::Until { instant: Instant::now() + length, wall_ms },
            _ => Pause::UntilMessage,
        });
        FailedTurnsPause { failed_turns: self.failed_turns, reason, until: pause_end, limit }
    }

    /// The limit with the number of turns in a row that have met it.
    fn count_tries(&mut self, limit: UsageLimit) -> UsageLimit {
        let is_same = |last: &UsageLimit| last.until.abs_diff(limit.until) <= SAME_LIMIT_MS;
        let last = self.last_limit.take().filter(is_same);
        let limit = UsageLimit { tries: last.map_or(1, |last| last.tries.saturating_add(1)), ..limit };
        self.last_limit.insert(limit).clone()
    }

    /// Called when a turn has just failed at a usage limit. Returns whether the agent tries the
    /// task of the turn again. The caller calls this before it records the failed turn
    /// ([`FailureStreak::add_failure`]).
    pub(super) fn keeps_task_at_limit(&self) -> bool {
        self.failed_turns < MAX_FAILED_TURNS - 1
    }

    /// Records the task of a turn that has just failed. Returns true if the agent tries the task
    /// again, and false if the task is to be marked failed. The caller calls this before it records
    /// the failed turn ([`FailureStreak::add_failure`]).
    pub(super) fn add_task_failure(&mut self, id: TaskId) -> bool {
        let previous_attempts =
            self.last_task.filter(|(last_id, _)| *last_id == id).map_or(0, |(_, attempts)| attempts);
        self.last_task = Some((id, previous_attempts + 1));
        let is_repeated = (FAILURES_BEFORE_TASK_RETRY..MAX_FAILED_TURNS - 1).contains(&self.failed_turns);
        is_repeated && previous_attempts + 1 < MAX_TASK_ATTEMPTS
    }

    /// Ends the pause, because its time has passed.
    pub(super) fn end_pause(&mut self) {
        self.pause = None;
    }

    /// Whether a pause keeps turns from starting. `unread_messages` are the unread messages of a
    /// person or of the lead. If one of them has arrived since the start of the last turn, the
    /// result is false.
    pub(super) fn is_paused(&self, unread_messages: &BTreeSet<u64>) -> bool {
        self.pause.is_some() && unread_messages.is_subset(&self.known_messages)
    }

    /// When the pause ends. `None` if there is no pause, or if only a message ends it. `now` is in
    /// milliseconds since the epoch.
    pub(super) fn deadline(&self, now: u64) -> Option<Instant> {
        match self.pause {
            Some(Pause::Until { instant, wall_ms }) => Some(instant.min(instant_of(wall_ms, now))),
            _ => None,
        }
    }
}

/// The instant of the time `at`. Both times are in milliseconds since the epoch.
pub(super) fn instant_of(at: u64, now: u64) -> Instant {
    Instant::now() + Duration::from_millis(at.saturating_sub(now))
}

/// How long the pause after `failed_turns` failed turns in a row lasts. `None` if only a message
/// ends the pause. `random`, from 0 to 1, varies the pause. So several agents that meet the same
/// usage limit do not start their turns at the same moment.
fn pause_length(failed_turns: u32, random: f64) -> Option<Duration> {
    let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failed_turns.saturating_sub(1)));
    let jitter = 0.75 + random / 2.0;
    (failed_turns < MAX_FAILED_TURNS).then(|| doubled.min(LONGEST_PAUSE).mul_f64(jitter))
}

/// How long to wait until the usage limit ends. `until` is the end of the limit, and `now` the
/// current time, both in milliseconds since the epoch. `random`, from 0 to 1, varies the wait, so
/// that several agents do not start at the same moment.
fn limit_wait(until: u64, now: u64, random: f64) -> Duration {
    let remaining = until.saturating_sub(now);
    let jitter = Duration::from_millis(LONGEST_LIMIT_JITTER.min(remaining / 2)).mul_f64(random);
    Duration::from_millis(remaining) + jitter
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::control_socket::TurnPause;

    fn limit(until: u64) -> Option<UsageLimit> {
        Some(UsageLimit { until, local_time: "15:00".to_owned(), tries: 1 })
    }

    #[test]
    fn pause_lasts_until_the_limit_ends_and_at_least_the_usual_time() {
        let wait = |until, random| limit_wait(until, 1_000, random).as_millis();
        assert_eq!((wait(3_601_000, 0.0), wait(3_601_000, 1.0)), (3_600_000, 3_720_000));
        assert_eq!((wait(3_000, 0.5), wait(0, 1.0)), (2_500, 0));
        let mut streak = FailureStreak::default();
        let long = streak.add_failure("exit 1".to_owned(), limit(3_600_000), 0).until.unwrap();
        assert!((3_600_000..=3_720_000).contains(&long), "{long}");
        let short = streak.add_failure("exit 1".to_owned(), limit(1), 0).until.unwrap();
        assert!((3_000..=5_000).contains(&short), "{short}");
    }

    #[test]
    fn turns_at_the_same_limit_are_counted_and_the_cap_holds() {
        let mut streak = FailureStreak::default();
        let mut tries = |until| streak.add_failure(String::new(), limit(until), 0).limit.unwrap().tries;
        let hour = 3_600_000;
        assert_eq!([tries(hour), tries(hour + 60_000), tries(6 * hour)], [1, 2, 1]);
        streak.end();
        assert_eq!(streak.add_failure(String::new(), limit(6 * hour), 0).limit.unwrap().tries, 1);
        while streak.keeps_task_at_limit() {
            assert!(streak.add_failure(String::new(), limit(hour), 0).until.is_some());
        }
        let last = streak.add_failure(String::new(), limit(hour), 0);
        assert_eq!((last.failed_turns, last.until), (MAX_FAILED_TURNS, None));
        assert_eq!(TurnPause::FailedTurns(last).limit(), None, "only a message ends the pause");
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_then_wait_for_a_message() {
        let seconds = |turns: u32| pause_length(turns, 0.5).map(|pause| pause.as_secs());
        let pauses: Vec<_> = (1..=11).map(seconds).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900].map(Some));
        assert_eq!((seconds(32), seconds(33), seconds(u32::MAX)), (Some(900), None, None));
        assert_eq!(pause_length(3, 0.0), Some(Duration::from_secs(6)));
        assert_eq!(pause_length(3, 1.0), Some(Duration::from_secs(10)));
    }

    #[test]
    fn message_after_the_start_of_the_turn_ends_the_pause() {
        let mut streak = FailureStreak::default();
        let [one, two] = [1, 2].map(|id| BTreeSet::from([id]));
        streak.begin_turn(one.clone());
        assert!(!streak.is_paused(&one));
        let pause = streak.add_failure("exit 1".to_owned(), None, 5_000);
        assert_eq!(pause.failed_turns, 1);
        assert!((6_500..=7_500).contains(&pause.until.unwrap()), "{pause:?}");
        assert!(streak.is_paused(&one) && streak.is_paused(&BTreeSet::new()));
        assert!(!streak.is_paused(&two), "another message has replaced the known one");
        streak.begin_turn(two.clone());
        streak.add_failure("exit 1".to_owned(), None, 0);
        assert!(streak.is_paused(&two));
        streak.end_pause();
        assert!(!streak.is_paused(&two));
    }

    #[test]
    fn pause_ends_by_the_clock_that_is_ahead() {
        let mut streak = FailureStreak::default();
        let end = streak.add_failure("exit 1".to_owned(), None, 5_000).until.unwrap();
        let started_at = Instant::now();
        assert!(streak.deadline(5_000).unwrap() > started_at + Duration::from_secs(1));
        assert!(streak.deadline(end).unwrap() <= Instant::now(), "the machine has slept");
        assert!(streak.deadline(0).unwrap() < started_at + Duration::from_secs(4), "the clock was set back");
    }

    #[test]
    fn turn_that_does_not_fail_ends_the_streak() {
        let mut streak = FailureStreak::default();
        for turn in 1..=MAX_FAILED_TURNS {
            // The task changes with every third turn.
            let is_kept = streak.add_task_failure(TaskId::from_number(1 + turn / 3).unwrap());
            assert_eq!(is_kept, turn > FAILURES_BEFORE_TASK_RETRY && turn < MAX_FAILED_TURNS, "turn {turn}");
            let pause = streak.add_failure("exit 1".to_owned(), None, 0);
            assert_eq!((pause.failed_turns, pause.until.is_none()), (turn, turn == MAX_FAILED_TURNS));
        }
        assert_eq!(streak.deadline(0), None);
        streak.begin_turn(BTreeSet::new());
        streak.end();
        assert_eq!(streak.add_failure("exit 1".to_owned(), None, 0).failed_turns, 1);
    }

    #[test]
    fn task_is_given_up_after_several_failed_turns_in_a_row() {
        let mut streak = FailureStreak::default();
        streak.add_failure("exit 1".to_owned(), None, 0);
        let id = |n| TaskId::from_number(n).unwrap();
        let kept: Vec<bool> = (0..MAX_TASK_ATTEMPTS).map(|_| streak.add_task_failure(id(1))).collect();
        assert_eq!(kept, [true, true, true, true, false]);
        assert!(streak.add_task_failure(id(2)), "another task");
    }
}
