//! The thread that plays a film. The thread sleeps until the next frame is due or a key moves the
//! film. While the film is paused, only a key wakes the thread.

use super::film_commands_and_status::FilmCommand;
use super::film_panes::FilmPanes;
use super::playback::FilmFrame;
use super::recorded_film::Film;
use crate::background_action_threads::{BackgroundRunner, copy_to_tmux_in_background};
use crate::ui_events_and_effects::{ActionResult, BackgroundAction, UiEvent};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

/// The event loop's end of the thread.
pub(super) struct FilmThread {
    requests: Sender<FilmRequest>,
    events: Sender<UiEvent>,
}

/// What the event loop asks the thread for.
enum FilmRequest {
    Move(FilmCommand),
    /// The output of this member.
    Output(String),
}

impl FilmThread {
    /// Starts the thread. It ends with the event loop.
    pub(super) fn start(film: Film, panes: FilmPanes, events: Sender<UiEvent>) -> FilmThread {
        let (requests, receiver) = channel();
        let sender = events.clone();
        let player = FilmPlayer { film, panes, frame_at: Instant::now() };
        std::thread::spawn(move || player.play(&receiver, &sender));
        FilmThread { requests, events }
    }
}

impl BackgroundRunner for FilmThread {
    fn start(&mut self, action: BackgroundAction) {
        let request = match action {
            BackgroundAction::MoveFilm(command) => FilmRequest::Move(command),
            BackgroundAction::CapturePane { name, .. } => FilmRequest::Output(name),
            BackgroundAction::CopyToTmux { text } => {
                return copy_to_tmux_in_background(text, self.events.clone());
            }
            // The keys of these actions are off in a film, and a past member needs no diagnosis.
            BackgroundAction::RunTeamctl { .. }
            | BackgroundAction::Diagnose { .. }
            | BackgroundAction::Attach { .. } => return,
        };
        // If the thread has ended, so will the event loop.
        self.requests.send(request).ok();
    }
}

/// A film that is played.
struct FilmPlayer {
    film: Film,
    panes: FilmPanes,
    /// When the film reached its position.
    frame_at: Instant,
}

impl FilmPlayer {
    /// Plays the film until the event loop ends.
    fn play(mut self, requests: &Receiver<FilmRequest>, events: &Sender<UiEvent>) {
        let mut next = vec![self.film.event()];
        while next.into_iter().all(|event| events.send(event).is_ok()) {
            let frame = self.film.next_frame();
            next = match (self.wait(frame, requests), frame) {
                (Ok(FilmRequest::Output(name)), _) => {
                    vec![UiEvent::PaneCaptured { output: self.film.output(&name), name }]
                }
                (Ok(FilmRequest::Move(command)), _) => self.run(command),
                (Err(RecvTimeoutError::Timeout), Some(frame)) => vec![self.show(frame)],
                (Err(_), _) => return,
            };
        }
    }

    /// Waits for a request, at most until the next frame is due.
    fn wait(
        &self,
        frame: Option<FilmFrame>,
        requests: &Receiver<FilmRequest>,
    ) -> Result<FilmRequest, RecvTimeoutError> {
        match frame {
            Some(frame) => {
                let due = self.frame_at + frame.delay;
                requests.recv_timeout(due.saturating_duration_since(Instant::now()))
            }
            None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn show(&mut self, frame: FilmFrame) -> UiEvent {
        // A late frame does not make the next ones early.
        self.frame_at = (self.frame_at + frame.delay).max(Instant::now());
        self.seek(frame.position);
        self.film.event()
    }

    /// Carries out a command at the position that the film has reached since its last frame.
    fn run(&mut self, command: FilmCommand) -> Vec<UiEvent> {
        let now = Instant::now();
        self.seek(self.film.position_after(now - self.frame_at));
        self.frame_at = now;
        let result = self.film.run(command);
        if let Ok(film_move) = &result {
            self.panes.follow(film_move, &self.film);
        }
        let refusal = result.err().map(|reason| UiEvent::ActionFinished(ActionResult::failure(reason)));
        std::iter::once(self.film.event()).chain(refusal).collect()
    }

    fn seek(&mut self, position: u64) {
        let film_move = self.film.seek(position);
        self.panes.follow(&film_move, &self.film);
    }
}
