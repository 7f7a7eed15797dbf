//! The panes of a film. Each member has a pane beside the film, which shows what the member's
//! program wrote. Each pane runs `teamd-top --film-pane SOCKET`, which connects to the socket and
//! prints what the film sends. When the film ends, the connections end, and so do the panes.

use super::recorded_film::{Film, FilmMove};
use crate::tmux_client_of_this_pane::run_tmux;
use client::read_team_record::TimedRecordEntry;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::MemberName;
use protocol::team_record_line::RecordEntry;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Clears a terminal.
const CLEAR_SCREEN: &str = "\u{1b}[0m\u{1b}[2J\u{1b}[H";

/// The panes of the members. Empty if the film has only its own pane.
#[derive(Default)]
pub(super) struct FilmPanes {
    panes: BTreeMap<MemberName, Sender<String>>,
}

/// The directory with the sockets of the panes. It is removed at the end.
pub(super) struct SocketDirectory {
    path: PathBuf,
    sockets: Vec<PathBuf>,
}

impl FilmPanes {
    /// Opens a pane for each member whose output was recorded, beside the pane of this program. If
    /// tmux could not open all of these panes, the result has a text for people that names the
    /// members without a pane.
    pub(super) fn open(film: &Film) -> Result<(FilmPanes, SocketDirectory, Option<String>), ErrorReport> {
        let (mut directory, mut panes) = (SocketDirectory::create()?, FilmPanes::default());
        let names = member_names(film.lines());
        for name in &names {
            let (socket, listener) = directory.bind()?;
            if !open_pane(&socket, name) {
                break;
            }
            let (sender, texts) = channel();
            std::thread::spawn(move || serve_pane(&listener, &texts));
            panes.panes.insert(name.clone(), sender);
        }
        let missing: Vec<&str> = names.iter().skip(panes.panes.len()).map(MemberName::as_str).collect();
        let notice =
            format!("tmux could not open panes for {}; is the window too small?", missing.join(", "));
        Ok((panes, directory, (!missing.is_empty()).then_some(notice)))
    }

    /// Shows in the panes what a move of the film has changed.
    pub(super) fn follow(&mut self, film_move: &FilmMove, film: &Film) {
        match film_move {
            FilmMove::Forward(added) => {
                for line in &film.lines()[added.clone()] {
                    if let RecordEntry::Output { member, text, .. } = &line.entry {
                        self.send(member, text.clone());
                    }
                }
            }
            FilmMove::FromStart => {
                let names: Vec<MemberName> = self.panes.keys().cloned().collect();
                for name in names {
                    self.send(&name, format!("{CLEAR_SCREEN}{}\n", film.output(name.as_str()).text()));
                }
            }
        }
    }

    /// Sends a text to a pane. A pane that a person has closed gets no more.
    fn send(&mut self, name: &MemberName, text: String) {
        let is_closed = self.panes.get(name).is_some_and(|pane| pane.send(text).is_err());
        if is_closed {
            self.panes.remove(name);
        }
    }
}

/// Writes the texts to the pane as soon as it has connected.
fn serve_pane(listener: &UnixListener, texts: &Receiver<String>) {
    let Ok((mut pane, _)) = listener.accept() else { return };
    while let Ok(text) = texts.recv() {
        if pane.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Opens a pane beside this one. Returns whether it succeeded: a window may have no space.
fn open_pane(socket: &Path, name: &MemberName) -> bool {
    let Ok(program) = std::env::current_exe() else { return false };
    let this_pane = std::env::var("TMUX_PANE").unwrap_or_default();
    let (program, socket) = (program.to_string_lossy(), socket.to_string_lossy());
    let split = ["split-window", "-d", "-t", &this_pane, "-P", "-F", "#{pane_id}", "--"];
    let Some(pane) = run_tmux(&[&split[..], &[&program, "--film-pane", &socket]].concat()) else {
        return false;
    };
    let title = ["select-pane", "-t", pane.trim(), "-T", name.as_str()];
    let layout = ["select-layout", "-t", &this_pane, "main-vertical"];
    let border = ["set-option", "-w", "-t", &this_pane, "pane-border-status", "top"];
    let format = ["set-option", "-w", "-t", &this_pane, "pane-border-format", " #{pane_title} "];
    let width = ["set-option", "-w", "-t", &this_pane, "main-pane-width", "60%"];
    [&title[..], &border, &format, &width, &layout].iter().for_each(|args| drop(run_tmux(args)));
    true
}

/// The members whose output the record has, in the order of their names.
fn member_names(lines: &[TimedRecordEntry]) -> Vec<MemberName> {
    let name = |line: &TimedRecordEntry| match &line.entry {
        RecordEntry::Output { member, .. } => Some(member.clone()),
        _ => None,
    };
    let names: std::collections::BTreeSet<MemberName> = lines.iter().filter_map(name).collect();
    names.into_iter().collect()
}

impl SocketDirectory {
    fn create() -> Result<SocketDirectory, ErrorReport> {
        let path = std::env::temp_dir().join(format!("teamd-film-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| socket_error(&path, &error))?;
        Ok(SocketDirectory { path, sockets: Vec::new() })
    }

    fn bind(&mut self) -> Result<(PathBuf, UnixListener), ErrorReport> {
        let socket = self.path.join(self.sockets.len().to_string());
        let listener = UnixListener::bind(&socket).map_err(|error| socket_error(&socket, &error))?;
        self.sockets.push(socket.clone());
        Ok((socket, listener))
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        self.sockets.iter().for_each(|socket| drop(std::fs::remove_file(socket)));
        std::fs::remove_dir(&self.path).ok();
    }
}

fn socket_error(path: &Path, error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot create {}: {error}", path.display()))
        .with_help("without panes: teamctl replay FILE")
}

/// Connects to the socket of a film and prints what the film sends, until the film ends. Runs in
/// the pane of a member.
pub(crate) fn copy_socket_to_stdout(socket: &Path) -> Result<(), ErrorReport> {
    let copied = UnixStream::connect(socket)
        .and_then(|mut stream| std::io::copy(&mut stream, &mut std::io::stdout().lock()));
    copied.map(drop).map_err(|error| {
        ErrorReport::new(ErrorKind::Io, format!("cannot show {}: {error}", socket.display()))
            .with_help("a film opens this pane: teamctl replay FILE --panes")
    })
}
