//! Starts the daemon: takes the locks, reads the settings and the roster, starts the threads and
//! binds the control socket. Then the event loop runs.

use crate::args::Args;
use crate::core::hosts::handle_host_events;
use crate::core::roster::Roster;
use crate::core::state::core_state::State;
use crate::core::state::daemon_settings::DaemonSettings;
use crate::core::teams::budget;
use crate::event_loop::run_event_loop;
use crate::io::cancel_worktree_setups::CancelledSetups;
use crate::io::control_connections::Connections;
use crate::io::effect_runner::EffectRunner;
use crate::io::files::{agent_environment_files, event_log, files_thread};
use crate::io::headless_shim_processes::HeadlessShims;
use crate::io::hosts::link_handles::LinkHandles;
use crate::io::keep_control_socket_at_path::ControlListener;
use crate::io::panes::run_pane_jobs::{self as panes_thread, TmuxLocation};
use crate::io::print_events_on_daemon_terminal::DaemonTerminal;
use crate::io::process_watcher::ProcessWatcher;
use crate::io::resource_limits_of_daemon_and_children::SavedLimits;
use crate::io::single_instance_locks::InstanceLock;
use crate::io::wake_sockets::WakeSockets;
use crate::io::watcher::barrier_files::Barriers;
use crate::io::watcher::file_watcher::OverflowFlag;
use crate::io::watcher::thread_that_adds_watches::WatcherThread;
use crate::io::{bind_control_socket, daemon_log, single_instance_locks};
use crate::read_roster_and_update_its_teams::{
    add_unknown_teams, forget_deletions_of_newer_teams, read_roster, remove_deleted_teams,
};
use crate::signals_to_core_events::watch_signals;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use protocol::policy::Policy;
use protocol::state_file_names;
use protocol::state_file_names::{DAEMON_LOCK, HOSTS, LEADS, ROSTER};
use protocol::team_and_member_names::TeamName;
use std::collections::HashMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Durability, Root, StateDir, own_program};
use tmux::ServerAddress;
use tokio::sync::mpsc::unbounded_channel;

/// Starts the daemon and runs it until it is stopped by a signal or by `teamctl down`. With the
/// argument `--check`, only checks that the daemon could start.
///
/// # Errors
///
/// If the daemon cannot start, or if its root was lost while the daemon was running.
pub(crate) fn run(args: &Args) -> Result<(), ErrorReport> {
    let start = Startup::new(args)?;
    if args.check {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot start the loop: {error}")))?;
    runtime.block_on(start.run())
}

/// What the daemon has locked and read before it starts its threads.
struct Startup {
    /// The lock on the state directory, which this process holds until it exits.
    lock: Arc<InstanceLock>,
    root: Root,
    state_dir: StateDir,
    roster: Roster,
    settings: DaemonSettings,
    tmux_location: TmuxLocation,
    durability: Durability,
    limits: SavedLimits,
}

impl Startup {
    fn new(args: &Args) -> Result<Startup, ErrorReport> {
        let path = store::resolve_root_path(args.root.as_deref())?;
        let durability = args.durability.parse::<Durability>();
        let durability = durability.map_err(|error| ErrorReport::new(ErrorKind::Usage, error.to_string()))?;
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        created.map_err(|error| ErrorReport::from_io("make", &path, &error))?;
        // The name of the state directory depends on the root's path. So the path must be
        // canonical. Otherwise two paths to the same root, for example through a symbolic link,
        // would have two state directories.
        store::check_own_link(&path)?;
        let canonical = path.canonicalize().map_err(|error| ErrorReport::from_io("find", &path, &error))?;
        let directories = store::directories_for_root(&canonical);
        let state_dir = StateDir::open(&directories.state_dir).map_err(ErrorReport::from)?;
        let root = Root::open(&canonical, &directories.state_dir, durability).map_err(ErrorReport::from)?;
        let socket = args.socket.clone().unwrap_or_else(|| directories.control_socket());
        bind_control_socket::check_path_length(&socket)?;
        bind_control_socket::check_socket_directory(&socket)?;
        leave_working_directory(&directories.state_dir);
        let lock = InstanceLock::acquire(&directories.state_dir.join(DAEMON_LOCK), root.path(), &socket)?;
        single_instance_locks::lock_root(&root)?;
        if !args.check {
            daemon_log::start(args, &directories.state_dir)?;
        }
        let limits = SavedLimits::raise_for_daemon();
        failpoint::hit("start.locked");
        let mut roster = read_roster(&state_dir)?;
        roster.invalidate_after_restart(platform::system().pid_origin().into());
        add_unknown_teams(&root, &mut roster);
        remove_deleted_teams(&root, &state_dir, &mut roster);
        forget_deletions_of_newer_teams(&root, &mut roster);
        roster.load_environments(|file| agent_environment_files::read_environment(&state_dir, file));
        remove_stale_files(&root, &state_dir, &roster);
        failpoint::hit("start.tidied");
        let settings = build_settings(args, &root, socket, directories.state_dir)?;
        Ok(Startup {
            lock: Arc::new(lock),
            root,
            state_dir,
            roster,
            settings,
            tmux_location: tmux_location(args),
            durability,
            limits,
        })
    }

    async fn run(mut self) -> Result<(), ErrorReport> {
        let (events, mut queue) = unbounded_channel();
        let panes = panes_thread::start(self.tmux_location, events.clone())?;
        self.settings.tmux_socket = panes.epoch.map(|epoch| epoch.socket_path);
        let wake_sockets = WakeSockets::default();
        let (barriers, overflow) = (Barriers::new(&self.settings.state_dir), OverflowFlag::default());
        let sinks = (wake_sockets.clone(), overflow.clone(), events.clone());
        let watcher = WatcherThread::new(self.settings.root.clone(), barriers, sinks).start()?;
        let event_log_cursor = event_log::read_event_log(&self.state_dir);
        let logged_counts = event_log_cursor.inboxes.clone();
        let mut state = State::new(self.settings, self.roster, event_log_cursor);
        state.restore_activity(|team, name| {
            self.root.team(team).ok()?.config_if_valid()?.member(name)?.is_active
        });
        state.load_policies(|team| read_policy(&self.state_dir, team));
        let mut links = LinkHandles::start(&self.root, &self.state_dir, self.durability, &events)?;
        handle_host_events::load_links(&mut state, links.take_mirrored_teams(), store::now());
        for (team, (epoch, usage)) in links.take_usage_of_old_homes() {
            budget::add_usage_of_old_home(&mut state, &team, epoch, usage);
        }
        state.host_links.load_moved_homes(links.cancel_unoffered_moves()?);
        let files = files_thread::start(self.root, self.state_dir, logged_counts, events.clone())?;
        let processes = ProcessWatcher::start(events.clone());
        let processes = processes.map_err(|error| {
            ErrorReport::new(ErrorKind::Internal, format!("cannot watch processes: {error}"))
        })?;
        let (accepted, mut new_connections) = unbounded_channel();
        let mut runner = EffectRunner {
            connections: Connections::default(),
            files,
            panes: panes.jobs,
            watcher,
            overflow,
            events: events.clone(),
            wake_sockets,
            processes,
            links,
            headless_shims: HeadlessShims::new(self.limits),
            setups: CancelledSetups::default(),
            unwatched_processes: HashMap::new(),
            terminal: DaemonTerminal::start(),
            listener: ControlListener::start(
                state.settings.socket.clone(),
                Arc::clone(&self.lock),
                accepted,
                events.clone(),
            )?,
        };
        watch_signals(&events)?;
        run_event_loop(&mut state, &mut runner, &mut queue, &mut new_connections).await;
        runner.connections.flush().await;
        // Removes the control socket. Then waits for the running job of each link, and for all
        // queued jobs of the files threads and the panes thread. The watcher thread has no such
        // jobs, so the daemon does not wait for it.
        runner.finish().await;
        panes.handle.join().ok();
        state.root_error.map_or(Ok(()), Err)
    }
}

/// Makes the state directory the daemon's working directory. Otherwise the working directory of the
/// caller would stay in use as long as the daemon runs. A user could not unmount its file system,
/// or remove it if it is a worktree.
fn leave_working_directory(state_dir: &Path) {
    let changed = std::env::set_current_dir(state_dir).or_else(|_| std::env::set_current_dir("/"));
    changed.unwrap_or_else(|error| tracing::warn!("cannot leave the working directory: {error}"));
}

/// Removes files that killed daemons have left: temporary files, and saved environments and exit
/// reports that no member of the roster needs. If a file cannot be removed, the error is only
/// logged, because such a file does no harm.
fn remove_stale_files(root: &Root, state: &StateDir, roster: &Roster) {
    let names = state.names().unwrap_or_default();
    // A temporary file replaces another file, and has the name of that file after a full stop. Only
    // the daemon that holds the lock writes such files. This daemon holds the lock and has not
    // written yet, so all of them were left by killed daemons.
    let prefixes = [ROSTER, LEADS, HOSTS, "policy-", "config-backup-"].map(|name| format!(".{name}"));
    let temp_files = names
        .iter()
        .filter(|name| name.contains(".tmp.") && prefixes.iter().any(|prefix| name.starts_with(prefix)));
    temp_files.for_each(|file| state.remove(file).unwrap_or_else(|error| tracing::warn!("{error}")));
    agent_environment_files::remove_unreferenced(state, roster)
        .unwrap_or_else(|error| tracing::warn!("{error}"));
    let is_current_report = |file: &str| {
        roster.records.iter().any(|record| state_file_names::exit_report(record.spawn_id.as_str()) == file)
    };
    let stale_reports = names.iter().filter(|file| file.starts_with("exit-") && !is_current_report(file));
    stale_reports.for_each(|file| state.remove(file).unwrap_or_else(|error| tracing::warn!("{error}")));
    for team in roster.joined_counts.keys().filter_map(|name| root.team(name).ok()) {
        let removed = team.remove_config_temp_files().and_then(|()| team.remove_abandoned());
        removed.unwrap_or_else(|error| tracing::warn!("{error}"));
    }
}

/// Reads the policy of a team. See [`Policy::parse_file`] for a missing or invalid file.
fn read_policy(state: &StateDir, team: &TeamName) -> Policy {
    let bytes = state.read(&state_file_names::policy(team)).unwrap_or_else(|error| {
        tracing::warn!("cannot read a policy: {error}");
        None
    });
    Policy::parse_file(bytes.as_deref())
}

fn build_settings(
    args: &Args,
    root: &Root,
    socket: PathBuf,
    state: PathBuf,
) -> Result<DaemonSettings, ErrorReport> {
    Ok(DaemonSettings {
        root: root.path().to_owned(),
        socket,
        tmux_socket: None,
        shim_program: find_shim_program()?,
        teamctl_program: installed_program(&own_program()?, "teamctl", Path::is_file),
        state_dir: state,
        pid: std::process::id(),
        no_output_after_ms: u64::try_from(args.no_output_after.as_millis()).ok().filter(|after| *after > 0),
        lease_ms: u64::try_from(args.lease.as_millis()).ok().filter(|lease| *lease > 0),
    })
}

/// The path of the shim that was installed with this daemon.
fn find_shim_program() -> Result<PathBuf, ErrorReport> {
    let path = installed_program(&own_program()?, "teamd-shim", Path::is_file);
    if path.is_file() {
        return Ok(path);
    }
    let message = format!("cannot find teamd-shim: there is no {}", path.display());
    Err(ErrorReport::new(ErrorKind::MissingPath, message).with_help("install all programs: make install"))
}

/// Chooses the tmux server for the panes: the server given with `-S` or `-L`, or else the server in
/// `$TMUX`, or else the server with the name `teamd`. Only in the last case the daemon starts even
/// if tmux is not installed.
///
/// If the daemon runs in a pane of the chosen server, the result also has this pane.
fn tmux_location(args: &Args) -> TmuxLocation {
    let env_var = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let current_socket = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    let requested = match (&args.tmux_socket, &args.tmux_name) {
        (Some(path), _) => Some(ServerAddress::Path(path.clone())),
        (_, Some(name)) => Some(ServerAddress::Name(name.clone())),
        _ => None,
    };
    let pane = env_var("TMUX_PANE").and_then(|pane| pane.parse().ok());
    match (requested, current_socket) {
        (None, Some(socket)) => {
            TmuxLocation { address: ServerAddress::Path(socket), pane, is_optional: false }
        }
        (Some(ServerAddress::Path(path)), Some(socket)) if path == socket => {
            TmuxLocation { address: ServerAddress::Path(path), pane, is_optional: false }
        }
        (Some(address), _) => TmuxLocation { address, pane: None, is_optional: false },
        (None, None) => {
            TmuxLocation { address: ServerAddress::Name("teamd".to_owned()), pane: None, is_optional: true }
        }
    }
}
