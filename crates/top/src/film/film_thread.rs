//! The thread that plays a film. It sleeps until the next frame is due or a key moves the film. A
//! paused film wakes it only by a key.

use super::film_commands_and_status::FilmCommand;
use super::film_panes::FilmPanes;
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
        std::thread::spawn(move || play(film, panes, &receiver, &sender));
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

fn play(mut film: Film, mut panes: FilmPanes, requests: &Receiver<FilmRequest>, events: &Sender<UiEvent>) {
    let mut frame_at = Instant::now();
    let mut event = film.event();
    loop {
        if events.send(event).is_err() {
            return;
        }
        let frame = film.next_frame();
        let request = match frame {
            Some(frame) => {
                let due = frame_at + frame.delay;
                requests.recv_timeout(due.saturating_duration_since(Instant::now()))
            }
            None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        event = match (request, frame) {
            (Err(RecvTimeoutError::Timeout), Some(frame)) => {
                // A late frame does not make the next ones early.
                frame_at = (frame_at + frame.delay).max(Instant::now());
                panes.follow(&film.seek(frame.position), &film);
                film.event()
            }
            (Ok(FilmRequest::Output(name)), _) => UiEvent::PaneCaptured { output: film.output(&name), name },
            (Ok(FilmRequest::Move(command)), _) => {
                let now = Instant::now();
                panes.follow(&film.seek(film.position_after(now - frame_at)), &film);
                frame_at = now;
                match film.run(command) {
                    Ok(film_move) => {
                        panes.follow(&film_move, &film);
                        film.event()
                    }
                    Err(reason) => {
                        if events.send(film.event()).is_err() {
                            return;
                        }
                        UiEvent::ActionFinished(ActionResult::failure(reason))
                    }
                }
            }
            (Err(_), _) => return,
        };
    }
}
