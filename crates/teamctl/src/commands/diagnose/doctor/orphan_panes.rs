//! Finds orphan panes: tmux panes of agents that no daemon's roster contains. teamd tags the pane
//! of each agent with the id of the agent's spawn (one start of a member), and the roster lists all
//! spawns. An orphan pane remains if the daemon's state directory was lost. `doctor` does not close
//! an orphan pane, but only prints the command that closes it, because the tag does not prove that
//! the pane belongs to this root.

use super::report::DoctorReport;
use crate::command_context::CommandContext;
use client::select_tmux_server::{self, TMUX_NAME};
use protocol::control_socket::StatusReply;
use protocol::state_file_names::ROSTER;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use store::env_var;

/// The tmux format for one line about a pane. The fields of the line are the pane id, the spawn id
/// in the pane tag, a flag, and the command with which the pane was started. The flag is `1` if the
/// process that runs in the pane is the one that ran there when the tag was set.
const PANE_FORMAT: &str = "#{pane_id} #{s/[^A-Za-z0-9-]/_/:@teamd_spawn} #{==:#{@teamd_pane_pid},#{pane_pid}} #{pane_start_command}";

/// A tmux server as an option of tmux and its value: `-S PATH` or `-L NAME`.
type TmuxServerArgs = [String; 2];

/// A tagged pane in which the shim still runs.
#[derive(Debug, PartialEq, Eq)]
struct OrphanPane {
    server: TmuxServerArgs,
    pane: String,
    spawn_id: String,
    /// The daemon's socket, from the shim's command line.
    socket: PathBuf,
}

pub(super) fn check(context: &CommandContext, status: Option<&StatusReply>, report: &mut DoctorReport) {
    let tagged: Vec<OrphanPane> = candidate_servers(status).iter().flat_map(tagged_panes).collect();
    // The rosters are read after the panes, so that they know every spawn of these panes.
    let (Ok(socket), Ok(directories)) = (context.socket(), context.directories()) else { return };
    let Some(spawns) = directories.state_dir.parent().and_then(spawns_in_all_rosters) else { return };
    let Some(daemon_panes) = panes_of_daemon(context) else { return };
    let is_orphan = |tagged: &&OrphanPane| {
        let is_known = spawns.contains(&tagged.spawn_id) || daemon_panes.contains(&tagged.pane);
        // Another daemon, which has another state directory, may have opened the pane.
        let has_other_daemon = tagged.socket != socket && UnixStream::connect(&tagged.socket).is_ok();
        !is_known && !has_other_daemon
    };
    let orphans: Vec<&OrphanPane> = tagged.iter().filter(is_orphan).collect();
    if orphans.is_empty() {
        report.ok("panes", "every pane with a pane tag of teamd belongs to an agent in a roster");
    }
    for orphan in orphans {
        let message =
            format!("pane {} belongs to the spawn {}, which is in no roster", orphan.pane, orphan.spawn_id);
        let fix = format!("see what runs there; to close it: {}", orphan.close_command());
        report.warn("panes", message, fix);
    }
}

impl OrphanPane {
    /// Parses a line in [`PANE_FORMAT`]. `None` if the pane has no tag, or if a person has started
    /// another command in the pane.
    fn parse(server: &TmuxServerArgs, line: &str) -> Option<OrphanPane> {
        let mut fields = line.splitn(4, ' ');
        let [pane, spawn_id, is_same_process, command] =
            std::array::from_fn(|_| fields.next().unwrap_or_default());
        let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        let is_shim =
            !spawn_id.is_empty() && words.any(|word| word == spawn_id) && words.next() == Some("--socket");
        let socket = words.next().filter(|_| is_shim && is_same_process == "1")?.into();
        Some(OrphanPane {
            server: server.clone(),
            pane: pane.to_owned(),
            spawn_id: spawn_id.to_owned(),
            socket,
        })
    }

    /// A shell command that closes the pane. It does nothing if the pane has another tag by then.
    fn close_command(&self) -> String {
        let [flag, name] = &self.server;
        let (name, pane, spawn_id) = (name.replace('\'', r"'\''"), &self.pane, &self.spawn_id);
        format!(
            "tmux {flag} '{name}' if-shell -F -t {pane} '#{{==:#{{@teamd_spawn}},{spawn_id}}}' 'kill-pane -t {pane}'"
        )
    }
}

/// The servers that may have panes of a daemon, without duplicates.
fn candidate_servers(status: Option<&StatusReply>) -> Vec<TmuxServerArgs> {
    let daemon_socket = status.and_then(|status| status.daemon.tmux.clone());
    let caller_socket = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    let mut paths: Vec<PathBuf> = daemon_socket.into_iter().chain(caller_socket).collect();
    paths.dedup();
    let servers = paths.iter().map(|path| ["-S".to_owned(), path.to_string_lossy().into_owned()]);
    let is_default = |path: &PathBuf| path.file_name().is_some_and(|name| name == TMUX_NAME);
    let default_server = (!paths.iter().any(is_default)).then(|| ["-L".to_owned(), TMUX_NAME.to_owned()]);
    servers.chain(default_server).collect()
}

/// The tagged panes of a server. Empty if the server is not running.
fn tagged_panes(server: &TmuxServerArgs) -> Vec<OrphanPane> {
    let arguments = ["list-panes", "-a", "-F", PANE_FORMAT];
    let list = select_tmux_server::tmux_output(server, &arguments).unwrap_or_default();
    let mut panes: Vec<OrphanPane> =
        list.lines().filter_map(|line| OrphanPane::parse(server, line)).collect();
    // tmux lists a window once for each session that it is linked to.
    panes.sort_by(|a, b| a.pane.cmp(&b.pane));
    panes.dedup();
    panes
}

/// Returns the spawn ids in the rosters of all roots of this user. `state_dirs` is the directory
/// that contains one state directory for each root. Returns `None` if one of the rosters cannot be
/// read, because any spawn could be in that roster.
fn spawns_in_all_rosters(state_dirs: &Path) -> Option<Vec<String>> {
    let state_dirs = std::fs::read_dir(state_dirs).into_iter().flatten().flatten().map(|entry| entry.path());
    let dirs_with_roster = state_dirs.filter(|state_dir| state_dir.join(ROSTER).exists());
    let spawns = dirs_with_roster.map(|state_dir| Some(store::read_roster_file(&state_dir)?.spawn_ids()));
    spawns.collect::<Option<Vec<_>>>().map(|spawns| spawns.concat())
}

/// Returns the panes of all members that the daemon runs; these are no orphans. Empty if no daemon
/// answers. `None` if a member is starting and its pane is not known yet: the caller then can't
/// tell whether a pane is an orphan.
fn panes_of_daemon(context: &CommandContext) -> Option<Vec<String>> {
    let Ok(status) = context.daemon_status() else { return Some(Vec::new()) };
    let members = || status.teams.iter().flat_map(|team| &team.members);
    let has_unknown_pane = members().any(|member| member.lifecycle == "starting" && member.pane.is_none());
    (!has_unknown_pane).then(|| members().filter_map(|member| member.pane.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_parsed_only_if_the_shim_of_the_tag_runs_in_the_pane() {
        let server = ["-S", "/tmp/it's/s"].map(str::to_owned);
        let parse = |line: &str| OrphanPane::parse(&server, line).map(|pane| (pane.spawn_id, pane.socket));
        let shim = r#"%5 a-1 1 "/opt/teamd-shim" run a-1 --socket /run/s"#;
        assert_eq!(parse(shim), Some(("a-1".to_owned(), "/run/s".into())));
        for line in [
            "%5  1 -zsh",
            "%5 a-1 0 teamd-shim run a-1 --socket /run/s",
            "%5 a-1 1 -zsh",
            "%5 a-1 1 teamd-shim run b-2 --socket /run/s",
            "",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
        let close =
            r"tmux -S '/tmp/it'\''s/s' if-shell -F -t %5 '#{==:#{@teamd_spawn},a-1}' 'kill-pane -t %5'";
        assert_eq!(OrphanPane::parse(&server, shim).unwrap().close_command(), close);
    }
}
