//! The position in a film, and how the position moves with time. The functions read no clock.

use client::read_team_record::FILM_SPEEDS;
use std::time::Duration;

/// The shortest time between two frames of a film.
const MIN_FRAME: Duration = Duration::from_millis(100);
/// The longest pause between two recorded lines that a film shows in full, in milliseconds at
/// normal speed. A longer pause is shortened to this time, unless the person wants all pauses in
/// full length.
const MAX_PAUSE: u64 = 5_000;

/// The position in a film, and how the film is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Playback {
    /// Milliseconds after the start of the record. The lines of the record up to this time are
    /// shown.
    pub(crate) position: u64,
    pub(crate) speed: FilmSpeed,
    pub(crate) motion: FilmMotion,
    pub(crate) long_pauses: LongPauses,
}

/// Whether a film moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilmMotion {
    Playing,
    Paused,
}

/// What becomes of times in which nothing happened for more than 5 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongPauses {
    /// They last 5 s.
    Shortened,
    InFull,
}

/// How fast a film is: an index in [`FILM_SPEEDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilmSpeed(usize);

/// The next change of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilmFrame {
    /// How long after the last frame it is shown.
    pub(crate) delay: Duration,
    /// Its position.
    pub(crate) position: u64,
}

impl FilmMotion {
    /// The other motion.
    pub(crate) fn toggled(self) -> FilmMotion {
        match self {
            FilmMotion::Playing => FilmMotion::Paused,
            FilmMotion::Paused => FilmMotion::Playing,
        }
    }
}

impl FilmSpeed {
    /// The speed with this text. `None` if the text is not one of [`FILM_SPEEDS`].
    pub(crate) fn parse(text: &str) -> Option<FilmSpeed> {
        FILM_SPEEDS.iter().position(|speed| *speed == text).map(FilmSpeed)
    }

    pub(crate) fn as_str(self) -> &'static str {
        FILM_SPEEDS[self.0]
    }

    pub(crate) fn faster(self) -> FilmSpeed {
        FilmSpeed((self.0 + 1).min(FILM_SPEEDS.len() - 1))
    }

    pub(crate) fn slower(self) -> FilmSpeed {
        FilmSpeed(self.0.saturating_sub(1))
    }

    /// The time that the recorded milliseconds take on the screen.
    fn screen_time(self, recorded: u64) -> Duration {
        // Each speed is twice the one before, and the first is 1/2.
        Duration::from_micros(recorded.saturating_mul(2_000) >> self.0)
    }

    /// The recorded milliseconds that are shown in this time.
    fn recorded_time(self, on_screen: Duration) -> u64 {
        u64::try_from(on_screen.as_micros() << self.0).map_or(u64::MAX, |halves| halves / 2_000)
    }
}

impl Playback {
    /// The next frame to show. `offsets` has the times of all lines of the record, in ascending
    /// order. Lines that follow each other closely are shown in one frame. `None` if the film is
    /// paused or at its end.
    pub(crate) fn next_frame(&self, offsets: &[u64]) -> Option<FilmFrame> {
        if self.motion == FilmMotion::Paused {
            return None;
        }
        let next = next_offset(offsets, self.position)?;
        let delay = self.speed.screen_time(self.shown_pause(next - self.position));
        match delay >= MIN_FRAME {
            true => Some(FilmFrame { delay, position: next }),
            false => Some(FilmFrame { delay: MIN_FRAME, position: self.position_after(MIN_FRAME, offsets) }),
        }
    }

    /// The position after the film was played for this time.
    pub(crate) fn position_after(&self, elapsed: Duration, offsets: &[u64]) -> u64 {
        let (mut position, mut left) = (self.position, self.speed.recorded_time(elapsed));
        if self.motion == FilmMotion::Paused {
            return position;
        }
        while let Some(next) = next_offset(offsets, position) {
            let pause = self.shown_pause(next - position);
            if pause > left {
                return position + left;
            }
            (position, left) = (next, left - pause);
        }
        position
    }

    /// How much of a pause is shown, in recorded milliseconds.
    fn shown_pause(&self, pause: u64) -> u64 {
        match self.long_pauses {
            LongPauses::Shortened => pause.min(MAX_PAUSE),
            LongPauses::InFull => pause,
        }
    }
}

/// The time of the first line after `position`.
fn next_offset(offsets: &[u64], position: u64) -> Option<u64> {
    offsets.get(offsets.partition_point(|offset| *offset <= position)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSETS: [u64; 6] = [0, 1_000, 1_010, 1_020, 61_020, 61_500];

    fn playback(position: u64, speed: &str) -> Playback {
        let speed = FilmSpeed::parse(speed).unwrap();
        Playback { position, speed, motion: FilmMotion::Playing, long_pauses: LongPauses::Shortened }
    }

    fn frames(mut playback: Playback) -> Vec<(u128, u64)> {
        let next = || {
            let frame = playback.next_frame(&OFFSETS)?;
            playback.position = frame.position;
            Some((frame.delay.as_millis(), frame.position))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn close_lines_share_a_frame_and_long_pauses_are_shortened() {
        let expected = [(1_000, 1_000), (100, 1_100), (5_000, 61_020), (480, 61_500)];
        assert_eq!(frames(playback(0, "1")), expected);
        let in_full = Playback { long_pauses: LongPauses::InFull, ..playback(1_100, "2") };
        assert_eq!(frames(in_full)[0], (29_960, 61_020));
        assert_eq!(frames(playback(0, "64")), [(100, 61_400), (100, 61_500)]);
        assert_eq!(frames(playback(0, "0.5"))[0], (2_000, 1_000));
    }

    #[test]
    fn paused_film_has_no_next_frame() {
        let paused = Playback { motion: FilmMotion::Paused, ..playback(0, "1") };
        assert_eq!(paused.next_frame(&OFFSETS), None);
        assert_eq!(paused.position_after(Duration::from_secs(9), &OFFSETS), 0);
    }

    #[test]
    fn position_moves_with_the_speed() {
        let after = |speed, ms| playback(0, speed).position_after(Duration::from_millis(ms), &OFFSETS);
        assert_eq!((after("1", 500), after("0.5", 500), after("4", 200)), (500, 250, 800));
        assert_eq!((after("1", 3_020), after("1", 6_020), after("1", 60_000)), (3_020, 61_020, 61_500));
    }

    #[test]
    fn speed_has_limits() {
        let fastest = FilmSpeed::parse("64").unwrap();
        assert_eq!((fastest.faster(), fastest.slower().as_str()), (fastest, "32"));
        assert_eq!(FilmSpeed::parse("1").unwrap().slower().slower().as_str(), "0.5");
        assert_eq!(FilmSpeed::parse("3"), None);
    }
}
