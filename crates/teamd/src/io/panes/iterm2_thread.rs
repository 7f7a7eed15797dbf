//! The iTerm2 thread: opens, captures and closes the sessions of agents in iTerm2, with `it2`. It
//! is a thread of its own, because each call of `it2` takes about 300 ms. It starts with the first
//! job.
//!
//! `it2` opens a session only with the shell of iTerm2's profile. So the thread types a command
//! that replaces this shell by the shim. The command is short, because a terminal may cut a long
//! line before the shell reads it. It runs a script that has the arguments of the shim and removes
//! itself.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::iterm2_jobs::{Iterm2Job, Iterm2Session, Iterm2Spec};
use crate::core::jobs::pane_jobs::{OpenedPane, PanePresence, PaneResult};
use crate::core::roster::agent_record::AgentPane;
use crate::core::spawn_lifecycle::ExpectedShim;
use crate::io::check_shim_program_and_descriptors::check_shim_start;
use crate::io::mark_spawn_in_output_log::mark_spawn_in_log;
use crate::io::panes::run_it2::{It2Error, run_it2};
use crate::io::process_start_error::thread_error;
use protocol::control_socket::CapturePaneReply;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::shell_quote::shell_quote;
use protocol::state_file_names::ITERM2_SCRIPTS_DIR;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use store::{StateDir, env_var};
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

/// The longest command that is typed, in bytes. Terminals cut lines at 255 bytes or later.
const MAX_TYPED_BYTES: usize = 250;
/// The content of the output log of a member in iTerm2.
const LOG_TEXT: &[u8] =
    b"The output of a session of iTerm2 is not logged. To see its screen: teamctl capture NAME\n";

/// The queue of the iTerm2 thread.
pub(super) struct Iterm2Queue {
    /// `None` before the first job.
    jobs: Option<Sender<Iterm2Job>>,
    events: UnboundedSender<CoreEvent>,
}

impl Iterm2Queue {
    pub(super) fn new(events: UnboundedSender<CoreEvent>) -> Iterm2Queue {
        Iterm2Queue { jobs: None, events }
    }

    /// Sends a job to the thread. Starts the thread if it does not run.
    pub(super) fn push(&mut self, job: Iterm2Job) {
        let jobs = match self.jobs.take().map_or_else(|| start(self.events.clone()), Ok) {
            Ok(jobs) => jobs,
            Err(error) => {
                let result = job.to_failed_result(thread_error(&error));
                return drop(self.events.send(CoreEvent::PaneJobDone(result)));
            }
        };
        // Sending cannot fail: the thread runs as long as its queue is open.
        drop(jobs.send(job));
        self.jobs = Some(jobs);
    }
}

fn start(events: UnboundedSender<CoreEvent>) -> std::io::Result<Sender<Iterm2Job>> {
    let (jobs, queue) = channel();
    let mut sessions = Iterm2Sessions::default();
    std::thread::Builder::new().name("iterm2".into()).spawn(move || sessions.run(&queue, &events))?;
    Ok(jobs)
}

/// The state of the iTerm2 thread.
#[derive(Default)]
struct Iterm2Sessions {
    /// The session that was opened last for each team.
    last_opened: BTreeMap<TeamName, String>,
    /// The directory with the scripts that start shims. `None` before the first session is opened.
    scripts: Option<PathBuf>,
}

impl Iterm2Sessions {
    fn run(&mut self, queue: &Receiver<Iterm2Job>, events: &UnboundedSender<CoreEvent>) {
        for job in queue {
            failpoint::hit("iterm2.job");
            let result = self.run_job(&job);
            events.send(CoreEvent::PaneJobDone(result)).ok();
        }
    }

    fn run_job(&mut self, job: &Iterm2Job) -> PaneResult {
        match job {
            Iterm2Job::Open(spec) => {
                PaneResult::PaneOpened { spawn: spec.spawn.clone(), result: self.open(spec) }
            }
            Iterm2Job::Inspect { spawn, session } => {
                PaneResult::PaneInspected { spawn: spawn.clone(), presence: inspect(session) }
            }
            Iterm2Job::Close { spawn, session } => {
                // The script is left if no shell has run it.
                let scripts = self.scripts.as_ref().and_then(|path| StateDir::open(path).ok());
                scripts.map(|scripts| scripts.remove(spawn.as_str()));
                match run_it2(&session.it2, &["close", "-f", "-s", &session.id]) {
                    Ok(_) | Err(It2Error::NoSuchSession) => {}
                    Err(error) => {
                        let error = error.to_report("close a session", &session.it2).message;
                        tracing::warn!("the session {} of iTerm2 may stay open: {error}", session.id);
                    }
                }
                PaneResult::PaneClosed { spawn: spawn.clone(), error: None }
            }
            Iterm2Job::Capture { client, session, lines } => {
                PaneResult::PaneCaptured { client: *client, result: capture(session, *lines) }
            }
        }
    }

    /// Opens a session, starts the shim in it, and sets its title.
    fn open(&mut self, spec: &Iterm2Spec) -> Result<OpenedPane, ErrorReport> {
        check_shim_start(&spec.argv)?;
        let scripts = StateDir::open(&spec.state_dir.join(ITERM2_SCRIPTS_DIR))?;
        self.scripts = Some(scripts.path().to_owned());
        let script = spec.spawn.as_str();
        let typed = typed_command(&scripts.path().join(script))?;
        scripts.replace(script, script_text(&spec.argv).as_bytes())?;
        let opened = self.split(spec).and_then(|session| {
            let it2 = &session.it2;
            run_it2(it2, &["run", "-s", &session.id, "--", &typed]).map_err(|error| {
                run_it2(it2, &["close", "-f", "-s", &session.id]).ok();
                error.to_report("type into the new session of iTerm2", it2)
            })?;
            Ok(session)
        });
        let session = opened.inspect_err(|_| drop(scripts.remove(script)))?;
        if let Err(error) = run_it2(&session.it2, &["set-name", "-s", &session.id, "--", &spec.title]) {
            tracing::warn!("cannot set the title of {}: {error:?}", session.id);
        }
        write_log(&spec.log);
        self.last_opened.insert(spec.team.clone(), session.id.clone());
        let (window, location, server_epoch) = Default::default();
        let pane = AgentPane { id: session.id, window, location, server_epoch, it2: Some(session.it2) };
        Ok(OpenedPane { pane, shim: ExpectedShim::AnyPid })
    }

    /// Opens an iTerm2 session for a new member by splitting another session: the last one that was
    /// opened for the team, or else the caller's, or else the one in which the daemon was started.
    /// So the members are at the right of the caller, one below the other.
    fn split(&self, spec: &Iterm2Spec) -> Result<Iterm2Session, ErrorReport> {
        let it2 = &spec.access.it2;
        let own_session = env_var("ITERM_SESSION_ID").and_then(|id| Some(id.rsplit_once(':')?.1.to_owned()));
        let siblings = self.last_opened.get(&spec.team).into_iter().chain(&spec.siblings);
        let candidates = siblings.map(|session| (session, ["split", "-s", session].to_vec()));
        let callers = spec.access.session.iter().chain(&own_session);
        let candidates = candidates
            .chain(callers.map(|session| (session, ["split", "-v", "-s", session].to_vec())))
            .filter(|(session, _)| Uuid::parse_str(session).is_ok());
        for (_, arguments) in candidates {
            match run_it2(it2, &arguments) {
                Err(It2Error::NoSuchSession) => {}
                Err(error) => return Err(error.to_report("open a session of iTerm2", it2)),
                Ok(output) => {
                    let id = created_session(&output)?;
                    return Ok(Iterm2Session { it2: it2.clone(), id });
                }
            }
        }
        Err(not_in_iterm2_error())
    }
}

/// The id of the new session in the output of `it2 session split`.
fn created_session(output: &str) -> Result<String, ErrorReport> {
    let id = output.lines().find_map(|line| line.strip_prefix("Created new pane: ")).map(str::trim);
    let id = id.filter(|id| Uuid::parse_str(id).is_ok()).map(str::to_owned);
    id.ok_or_else(|| {
        let message = format!("cannot find the new session of iTerm2: it2 printed {output:?}");
        ErrorReport::new(ErrorKind::Io, message).with_help("update it: pipx upgrade it2")
    })
}

fn not_in_iterm2_error() -> ErrorReport {
    let message =
        "cannot open a session of iTerm2: neither this terminal, nor a member's, nor teamd's is in iTerm2";
    ErrorReport::new(ErrorKind::Refused, message).with_help(
        "type it in a session of iTerm2, outside tmux; or leave out --backend iterm2, and see the panes with: tmux -CC attach",
    )
}

/// The command that a shell in iTerm2 gets. All usual shells read this form.
fn typed_command(script: &Path) -> Result<String, ErrorReport> {
    let path = script.to_string_lossy();
    let command = format!(" exec sh '{path}'");
    match path.contains(|c: char| c == '\'' || c == '\\' || c.is_control()) || command.len() > MAX_TYPED_BYTES
    {
        false => Ok(command),
        true => {
            let message = format!("cannot type {path} into iTerm2: the path is too long, or has a quote");
            Err(ErrorReport::new(ErrorKind::Config, message)
                .with_help("set XDG_STATE_HOME to a short path, and start teamd again"))
        }
    }
}

fn script_text(argv: &[String]) -> String {
    let words: Vec<_> = argv.iter().map(|word| shell_quote(word)).collect();
    format!("rm -f -- \"$0\"\nexec {}\n", words.join(" "))
}

/// Writes a line into the output log that says where the output is.
fn write_log(log: &Path) {
    mark_spawn_in_log(log);
    let (Some(directory), Some(name)) = (log.parent(), log.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    let written = StateDir::open(directory).and_then(|directory| directory.append(name, LOG_TEXT, u64::MAX));
    written.unwrap_or_else(|error| tracing::warn!("cannot write {}: {error}", log.display()));
}

fn inspect(session: &Iterm2Session) -> PanePresence {
    match run_it2(&session.it2, &["list", "--json"]) {
        Ok(sessions) if sessions.contains(&session.id) => PanePresence::Present,
        Ok(_) => PanePresence::Absent,
        Err(_) => PanePresence::Unknown,
    }
}

/// The text that `it2 session capture` prints after the captured lines.
const CAPTURED: &str = "Screen captured to: /dev/stdout\n";

fn capture(session: &Iterm2Session, lines: Option<u32>) -> Result<CapturePaneReply, ErrorReport> {
    let arguments: &[&str] = match lines {
        None => &["read", "-s", &session.id],
        Some(_) => &["capture", "--history", "-o", "/dev/stdout", "-s", &session.id],
    };
    let text =
        run_it2(&session.it2, arguments).map_err(|error| error.to_report("capture it", &session.it2))?;
    let screen = match lines {
        None => text,
        Some(lines) => last_lines(text.strip_suffix(CAPTURED).unwrap_or(&text), lines),
    };
    Ok(CapturePaneReply { screen })
}

/// The last `lines` lines of `text`. Blank lines at the end do not count.
fn last_lines(text: &str, lines: u32) -> String {
    let text: Vec<_> = text.trim_end().lines().collect();
    let start = text.len().saturating_sub(usize::try_from(lines).unwrap_or(usize::MAX));
    text[start..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_command_is_short_and_has_no_quote() {
        let typed = |path: &str| typed_command(Path::new(path)).ok();
        assert_eq!(typed("/a b/x").as_deref(), Some(" exec sh '/a b/x'"));
        assert!(
            ["/it's/x", "/a\\b", "/a\nb", &"x".repeat(MAX_TYPED_BYTES)]
                .iter()
                .all(|path| typed(path).is_none())
        );
    }

    #[test]
    fn only_a_uuid_is_a_session() {
        let id = "6A7B8C9D-0000-4000-8000-000000000001";
        assert_eq!(created_session(&format!("Created new pane: {id}\n")).unwrap(), id);
        assert!(
            ["", "Created new pane: -x\n", "Created new pane: active\n"]
                .iter()
                .all(|output| created_session(output).is_err())
        );
    }

    #[test]
    fn last_lines_are_those_with_text() {
        assert_eq!((last_lines("a\nb\nc\n \n", 2), last_lines("a", 9)), ("b\nc".to_owned(), "a".to_owned()));
    }
}
