//! A team's record and the position in it, which time and commands move.

use super::film_commands_and_status::{FilmCommand, FilmStatus};
use super::film_marks::{FilmMark, JumpDirection, MarkKind, find_jump_target, find_marks};
use super::folded_team::FoldedTeam;
use super::playback::{FilmFrame, FilmMotion, FilmSpeed, LongPauses, Playback};
use crate::clock_time::ScreenClock;
use crate::team_snapshot_for_screen::ScreenSnapshot;
use crate::ui_events_and_effects::{MemberOutput, UiEvent};
use client::read_team_record::{TeamRecord, TimedRecordEntry};
use jiff::tz::TimeZone;
use protocol::team_and_member_names::MemberName;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A team's record and the position in it.
pub(crate) struct Film {
    record: TeamRecord,
    /// The time of each line, in milliseconds after the start of the record.
    offsets: Vec<u64>,
    marks: Arc<Vec<FilmMark>>,
    playback: Playback,
    /// The team at the position.
    team: FoldedTeam,
    /// How many lines of the record are applied to `team`.
    applied: usize,
    /// The time zone in which times are shown.
    zone: TimeZone,
}

/// How a change of the position has changed the shown lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FilmMove {
    /// These lines were added.
    Forward(Range<usize>),
    /// The lines were applied anew from the first one.
    FromStart,
}

impl Film {
    /// A film at its start.
    pub(crate) fn new(record: TeamRecord, speed: FilmSpeed, long_pauses: LongPauses, zone: TimeZone) -> Film {
        let mut film = Film {
            offsets: record.lines.iter().map(|line| line.offset).collect(),
            marks: Arc::new(find_marks(&record.lines)),
            playback: Playback { position: 0, speed, motion: FilmMotion::Playing, long_pauses },
            team: FoldedTeam::default(),
            applied: 0,
            zone,
            record,
        };
        film.seek(0);
        film
    }

    /// The next change of the film by itself. `None` if it is paused or at its end.
    pub(crate) fn next_frame(&self) -> Option<FilmFrame> {
        self.playback.next_frame(&self.offsets)
    }

    /// The position that the film reaches when it was played for this time.
    pub(crate) fn position_after(&self, elapsed: Duration) -> u64 {
        self.playback.position_after(elapsed, &self.offsets)
    }

    /// Moves the film to a position. After a move back, the team's state is computed again from the
    /// first line of the record. This takes less than half a second for 100,000 lines.
    pub(crate) fn seek(&mut self, position: u64) -> FilmMove {
        self.playback.position = position.min(self.record.length());
        let wanted = self.offsets.partition_point(|offset| *offset <= self.playback.position);
        let is_back = wanted < self.applied;
        if is_back {
            (self.team, self.applied) = (FoldedTeam::default(), 0);
        }
        let added = self.applied..wanted;
        for line in &self.record.lines[added.clone()] {
            self.team.apply(self.record.started_at + line.offset, &line.entry);
        }
        self.applied = wanted;
        if is_back { FilmMove::FromStart } else { FilmMove::Forward(added) }
    }

    /// Carries out a command of the person who watches the film.
    ///
    /// # Errors
    ///
    /// A text for people, if the command is a jump and there is nothing to jump to.
    pub(crate) fn run(&mut self, command: FilmCommand) -> Result<FilmMove, String> {
        let Playback { position, motion, .. } = self.playback;
        let target = match command {
            FilmCommand::TogglePause => {
                self.playback.motion = motion.toggled();
                position
            }
            FilmCommand::Faster => {
                self.playback.speed = self.playback.speed.faster();
                position
            }
            FilmCommand::Slower => {
                self.playback.speed = self.playback.speed.slower();
                position
            }
            FilmCommand::Skip(by) => position.saturating_add_signed(by),
            FilmCommand::Jump(kind, direction) => {
                let target = find_jump_target(&self.marks, position, kind, direction);
                self.playback.motion = FilmMotion::Paused;
                target.ok_or_else(|| no_mark_text(kind, direction))?
            }
            FilmCommand::GoToStart => 0,
            FilmCommand::GoToEnd => u64::MAX,
        };
        Ok(self.seek(target))
    }

    /// The event that shows the present state of the film.
    pub(crate) fn event(&mut self) -> UiEvent {
        UiEvent::FilmMoved(Box::new(self.snapshot()), self.status())
    }

    fn snapshot(&mut self) -> ScreenSnapshot {
        let now = self.record.started_at + self.playback.position;
        self.team.snapshot(&ScreenClock::at(now, self.zone.clone()))
    }

    fn status(&self) -> FilmStatus {
        FilmStatus { playback: self.playback, length: self.record.length(), marks: Arc::clone(&self.marks) }
    }

    /// The end of a member's output.
    pub(crate) fn output(&self, name: &str) -> MemberOutput {
        self.team.output(&MemberName::new_unchecked(name))
    }

    /// The record.
    pub(crate) fn record(&self) -> &TeamRecord {
        &self.record
    }

    /// The lines of the record.
    pub(crate) fn lines(&self) -> &[TimedRecordEntry] {
        &self.record.lines
    }
}

fn no_mark_text(kind: MarkKind, direction: JumpDirection) -> String {
    let mark = match kind {
        MarkKind::Message => "message",
        MarkKind::Failure => "failure",
        MarkKind::Request => "request",
    };
    match direction {
        JumpDirection::Next => format!("there is no later {mark}"),
        JumpDirection::Previous => format!("there is no earlier {mark}"),
    }
}
