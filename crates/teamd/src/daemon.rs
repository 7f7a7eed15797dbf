//! The daemon: puts the parts together, then one loop over one event enum.

use crate::act::Hands;
use crate::args::Args;
use crate::connection::{Connections, accept};
use crate::effect::Effect;
use crate::event::{Event, Now};
use crate::headless::Headless;
use crate::instance::{self, Bound, Lock};
use crate::life::{self, Lives};
use crate::limits::Limits;
use crate::lines::Lines;
use crate::panes::{self, Home};
use crate::roster::{ROSTER_VERSION, Roster};
use crate::screen::Screen;
use crate::state::{Setting, State};
use crate::step::{next_deadline, restart, step};
use crate::watch::{Asked, Marks, Missed};
use crate::{files, log};
use protocol::control::LeadsFile;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::event::EventKind;
use protocol::name::TeamName;
use protocol::policy::Policy;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use store::{Durability, Root, StateDir};
use tmux::ServerAddress;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Runs until a signal, or until `teamctl down`.
///
/// # Errors
/// What keeps it from starting.
pub(crate) fn run(args: &Args) -> Result<(), ErrorReport> {
    let start = Start::new(args)?;
    if args.check {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot start the loop: {error}")))?;
    runtime.block_on(start.run())
}

/// Everything that is had before the loop begins.
struct Start {
    _lock: Lock,
    root: Root,
    state_dir: StateDir,
    roster: Roster,
    setting: Setting,
    home: Home,
    limits: Limits,
}

impl Start {
    fn new(args: &Args) -> Result<Start, ErrorReport> {
        let path = store::resolve_root_path(args.root.as_deref())?;
        let durability = args.durability.parse::<Durability>();
        let durability = durability.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| ErrorReport::from_io("make", &path, &error))?;
        // Two spellings of one root would have two places.
        let canonical = path.canonicalize().map_err(|error| ErrorReport::from_io("find", &path, &error))?;
        let place = store::directories_for_root(&canonical);
        let state_dir = StateDir::open(&place.state_dir).map_err(ErrorReport::from)?;
        let root =
            Root::open(&canonical, &place.state_dir.join("aside"), durability).map_err(ErrorReport::from)?;
        let socket = args.socket.clone().unwrap_or_else(|| place.control_socket());
        // Panes start in another directory than ours.
        let socket =
            std::path::absolute(&socket).map_err(|error| ErrorReport::from_io("find", &socket, &error))?;
        instance::check_length(&socket)?;
        instance::check_place(&socket)?;
        let lock = Lock::take(&place.state_dir.join("teamd.lock"), root.path(), &socket)?;
        instance::hold(&root)?;
        if !args.check {
            log::start(args, &place.state_dir)?;
        }
        let limits = Limits::before_ours();
        failpoint::hit("start.locked");
        let mut roster = read_roster(&state_dir)?;
        roster.disown_before(life::boot());
        take_in(&root, &mut roster);
        let_go(&root, &state_dir, &mut roster);
        roster.recall_environments(|file| files::environment(&state_dir, file));
        tidy(&root, &state_dir, &roster);
        failpoint::hit("start.tidied");
        let setting = setting(args, &root, socket, place.state_dir)?;
        Ok(Start { _lock: lock, root, state_dir, roster, setting, home: home(args), limits })
    }

    async fn run(mut self) -> Result<(), ErrorReport> {
        let (events, mut queue) = unbounded_channel();
        let panes = panes::start(self.home, events.clone())?;
        self.setting.tmux_socket = panes.epoch.map(|epoch| epoch.socket_path);
        let lines = Lines::default();
        let (marks, missed) = (Marks::below(&self.setting.state), Missed::default());
        let (root, told) = (self.setting.root.clone(), (lines.clone(), missed.clone(), events.clone()));
        let watch = Asked::new(root, marks, told).start()?;
        let tale = files::told(&self.state_dir);
        let inboxes = tale.inboxes.clone();
        let mut state = State::new(self.setting, self.roster, tale);
        state.recall(|team, name| {
            self.root.team(team).ok()?.config_for_repairer().ok()?.member(name)?.is_active
        });
        state.recall_policies(|team| policy(&self.state_dir, team));
        let (files, files_thread) = files::start(self.root, self.state_dir, inboxes, events.clone())?;
        let lives = Lives::start(events.clone());
        let lives = lives.map_err(|error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot watch processes: {error}"))
        })?;
        let mut hands = Hands {
            connections: Connections::default(),
            files,
            panes: panes.jobs,
            watch,
            missed,
            events: events.clone(),
            lines,
            lives,
            headless: Headless::new(self.limits),
            unwatched: HashMap::new(),
            screen: Screen::start(),
        };
        let (mut admitted, bound) = listen(&state.setting.socket)?;
        signals(&events)?;
        turn(&mut state, &mut hands, &mut queue, &mut admitted).await;
        hands.connections.flush().await;
        // The socket goes with its lock. What files and panes have been given is finished; nobody waits for the watcher.
        bound.remove();
        drop(hands);
        files_thread.join().ok();
        panes.handle.join().ok();
        state.lost.map_or(Ok(()), Err)
    }
}

/// Who connects from now on, and the socket to remove in the end.
fn listen(socket: &Path) -> Result<(UnboundedReceiver<UnixStream>, Bound), ErrorReport> {
    let (admit, admitted) = unbounded_channel();
    let (listener, bound) = instance::listen(socket)?;
    let listener = tokio::net::UnixListener::from_std(listener)
        .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot listen: {error}")))?;
    tokio::spawn(accept(listener, admit));
    Ok((admitted, bound))
}

/// The loop.
async fn turn(
    state: &mut State,
    hands: &mut Hands,
    queue: &mut UnboundedReceiver<Event>,
    admitted: &mut UnboundedReceiver<UnixStream>,
) {
    let clock = Instant::now();
    let mut effects = restart(state, now(clock));
    let ready = EventKind::DaemonReady { pid: state.setting.pid, root: state.setting.root.clone() };
    effects.push(Effect::of_daemon(ready));
    if state.setting.tmux_socket.is_none() {
        let why = "there is no tmux: teammates run without panes alone, with --backend in-process";
        effects.push(Effect::of_daemon(EventKind::Error { message: why.to_owned() }));
    }
    let mut conn = 0;
    loop {
        let wall = now(clock).wall;
        let ends = effects.drain(..).any(|effect| hands.act(effect, wall).is_break());
        hands.files.go();
        if ends {
            return;
        }
        let deadline = clock + std::time::Duration::from_millis(next_deadline(state));
        let event = tokio::select! {
            Some(event) = queue.recv() => event,
            Some(stream) = admitted.recv() => {
                conn += 1;
                hands.connections.admit(conn, stream, &hands.events);
                continue;
            }
            () = tokio::time::sleep_until(deadline.into()) => Event::Deadline,
        };
        tracing::debug!(?event);
        match event {
            Event::Closed { conn } => hands.connections.forget(conn),
            Event::Overflow => hands.missed.heard(),
            _ => {}
        }
        effects = step(state, event, now(clock));
    }
}

fn now(clock: Instant) -> Now {
    Now { mono: clock.elapsed().as_millis() as u64, wall: store::now() }
}

fn signals(events: &UnboundedSender<Event>) -> Result<(), ErrorReport> {
    // Where no file may grow further (`ulimit -f`) a write shall fail. Once it is listened to, it ends nobody.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).ok();
    let kinds = [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::interrupt(), "SIGINT"),
        (SignalKind::hangup(), "SIGHUP"),
    ];
    // What is under way is waited for, a lock for seconds; whoever says it twice does not want that.
    let said = Arc::new(AtomicBool::new(false));
    for (kind, name) in kinds {
        let number = kind.as_raw_value();
        signal_hook::flag::register_conditional_shutdown(number, 128 + number, said.clone()).ok();
        let stream = signal(kind);
        let mut stream = stream.map_err(|error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot wait for {name}: {error}"))
        })?;
        let (events, said) = (events.clone(), said.clone());
        tokio::spawn(async move {
            if stream.recv().await.is_some() {
                said.store(true, Ordering::Relaxed);
                events.send(Event::Signal(name)).ok();
            }
        });
    }
    Ok(())
}

fn read_roster(state: &StateDir) -> Result<Roster, ErrorReport> {
    let Some(bytes) = state.read(files::ROSTER).map_err(ErrorReport::from)? else {
        return Ok(Roster::default());
    };
    let path = state.path().join(files::ROSTER);
    let form: Form = serde_json::from_slice(&bytes).map_err(|error| unreadable(&path, &error))?;
    if form.version > ROSTER_VERSION {
        let message =
            format!("cannot read {}: a newer teamd wrote it (version {})", path.display(), form.version);
        return Err(ErrorReport::new(ErrorKind::Config, message).with_help("start that teamd again"));
    }
    serde_json::from_slice(&bytes).map_err(|error| unreadable(&path, &error))
}

/// Of a roster whose other parts may be what a later release makes of them.
#[derive(serde::Deserialize)]
struct Form {
    version: u32,
}

fn unreadable(path: &Path, error: &serde_json::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
        .with_help("move it aside; agents that run then are not adopted")
}

/// Teams that lie in the root and that no roster knows: made by another program, or by a teamd whose state was
/// lost. They can be spawned into, and deleted; whoever is on them already is not ours to end.
fn take_in(root: &Root, roster: &mut Roster) {
    for name in root.teams().unwrap_or_default().into_iter().filter(|name| !name.is_claude_session()) {
        let members = || {
            root.team(&name)
                .and_then(|team| team.config_for_repairer())
                .map_or(0, |config| config.members.len())
        };
        roster.teams.entry(name.clone()).or_insert_with(|| members().saturating_sub(1) as u64);
    }
}

/// Teams of which no directory is left, nor a worktree that we answer for, and nobody lives: a daemon was killed behind
/// their deletion, which begins with the worktrees.
fn let_go(root: &Root, state: &StateDir, roster: &mut Roster) {
    let living = roster.agents.iter().map(|agent| &agent.team);
    let resting = roster.resting.iter().map(|resting| &resting.comeback.order.team);
    let with_members: BTreeSet<TeamName> = living.chain(resting).cloned().collect();
    let is_gone = |name: &TeamName| {
        !with_members.contains(name)
            && roster.worktrees.get(name).is_none_or(Vec::is_empty)
            && matches!(root.open_team_without_config(name), Ok(None))
    };
    for name in roster.teams.keys().filter(|name| is_gone(name)).cloned().collect::<Vec<_>>() {
        roster.teams.remove(&name);
        roster.layouts.remove(&name);
        let forgotten = files::forget_team(state, &name).and(root.delete_records(&name));
        forgotten.unwrap_or_else(|error| tracing::warn!("{error}"));
    }
}

/// What a killed daemon left of the files that daemons alone write. Where it can't be removed it does no harm.
fn tidy(root: &Root, state: &StateDir, roster: &Roster) {
    let names = state.names().unwrap_or_default();
    let ours = [files::ROSTER, LeadsFile::FILE_NAME, "policy-", "config-"].map(|name| format!(".{name}"));
    let halves =
        names.iter().filter(|name| name.contains(".tmp.") && ours.iter().any(|of| name.starts_with(of)));
    halves.for_each(|half| state.remove(half).unwrap_or_else(|error| tracing::warn!("{error}")));
    files::drop_unknown(state, roster).unwrap_or_else(|error| tracing::warn!("{error}"));
    let known = |file: &str| roster.agents.iter().any(|agent| files::end_record(&agent.spawn) == file);
    let words = names.iter().filter(|file| file.starts_with("end-") && !known(file));
    words.for_each(|file| state.remove(file).unwrap_or_else(|error| tracing::warn!("{error}")));
    for team in roster.teams.keys().filter_map(|name| root.team(name).ok()) {
        let tidied = team.remove_config_temp_files().and_then(|()| team.remove_abandoned());
        tidied.unwrap_or_else(|error| tracing::warn!("{error}"));
    }
}

/// Of a team whose policy can't be read a person or the lead answers everything.
fn policy(state: &StateDir, team: &TeamName) -> Policy {
    let bytes = state.read(&Policy::file_name(team)).unwrap_or_else(|error| {
        tracing::warn!("cannot read a policy: {error}");
        None
    });
    Policy::parse_or_default(bytes.as_deref())
}

fn setting(args: &Args, root: &Root, socket: PathBuf, state: PathBuf) -> Result<Setting, ErrorReport> {
    Ok(Setting {
        root: root.path().to_owned(),
        socket,
        tmux_socket: None,
        pane_program: pane_program()?,
        state,
        pid: std::process::id(),
        stuck_after: u64::try_from(args.stuck.as_millis()).ok().filter(|after| *after > 0),
    })
}

/// The one that came with this teamd.
fn pane_program() -> Result<PathBuf, ErrorReport> {
    let missing = |why: String| {
        ErrorReport::new(ErrorKind::MissingPath, format!("cannot find teamd-pane: {why}"))
            .with_help("install it beside teamd")
    };
    let own = std::env::current_exe().map_err(|error| missing(error.to_string()))?;
    let path = own.with_file_name("teamd-pane");
    if path.is_file() { Ok(path) } else { Err(missing(format!("there is no {}", path.display()))) }
}

fn home(args: &Args) -> Home {
    let var = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let inside = var("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    let asked = match (&args.tmux_socket, &args.tmux_name) {
        (Some(path), _) => Some(ServerAddress::Path(path.clone())),
        (_, Some(name)) => Some(ServerAddress::Name(name.clone())),
        _ => None,
    };
    let pane = var("TMUX_PANE").and_then(|pane| pane.parse().ok());
    match (asked, inside) {
        (None, Some(socket)) => Home { address: ServerAddress::Path(socket), pane, optional: false },
        (Some(ServerAddress::Path(path)), Some(socket)) if path == socket => {
            Home { address: ServerAddress::Path(path), pane, optional: false }
        }
        (Some(address), _) => Home { address, pane: None, optional: false },
        (None, None) => Home { address: ServerAddress::Name("teamd".to_owned()), pane: None, optional: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Durability;

    #[test]
    fn a_team_of_which_nothing_is_left_is_let_go_and_one_with_a_directory_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root");
        std::fs::create_dir_all(path.join("teams/half")).unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let root = Root::open(&path, &state.path().join("aside"), Durability::Process).unwrap();
        let [half, gone] = ["half", "gone"].map(|name| TeamName::parse(name).unwrap());
        let beside = ["answers", "journal"].map(|of| state.open_subdir(of).unwrap());
        for team in [&half, &gone] {
            state.replace(&format!("config-{team}.json"), b"{}").unwrap();
            beside.iter().for_each(|of| of.replace(&format!("{team}.jsonl"), b"").unwrap());
        }
        let mut roster = Roster { teams: [(half.clone(), 1), (gone, 1)].into(), ..Roster::default() };
        let_go(&root, &state, &mut roster);
        assert_eq!(roster.teams.into_keys().collect::<Vec<_>>(), [half]);
        assert!(state.names().unwrap().contains(&"config-half.json".to_owned()));
        assert!(!state.names().unwrap().contains(&"config-gone.json".to_owned()));
        beside.iter().for_each(|of| assert_eq!(of.names().unwrap(), ["half.jsonl"]));
    }

    #[test]
    fn a_team_whose_directory_is_missing_stays_while_it_has_a_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let root =
            Root::open(&dir.path().join("root"), &dir.path().join("aside"), Durability::Process).unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let mut roster: Roster = serde_json::from_value(serde_json::json!({
            "version": ROSTER_VERSION, "teams": {"survey": 1}, "agents": [],
            "worktrees": {"survey": [{"member": "ann", "tree": {
                "path": "/repo/ann", "branch": "ann", "new_branch": true, "repository": "/repo/.git", "base": "0",
                "inode": 1,
            }}]},
        }))
        .unwrap();
        let_go(&root, &state, &mut roster);
        assert_eq!(roster.teams.len(), 1, "and with it the next daemon's memory of the worktree");
    }
}
