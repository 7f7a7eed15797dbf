//! Panes with our mark that are of a life that no roster knows: what is left where a daemon's state was lost. They are
//! named with the command that closes them, and never closed here: what a mark says of its root is too little for that.

use super::report::DoctorReport;
use crate::context::CommandContext;
use client::tmux_target::{self, TMUX_NAME};
use protocol::control::{Reply, StatusReply};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use store::env_var;

/// Of each pane: its id, whose it is, whether its process is the one that the mark was given for, how that was started.
const PANE_FORMAT: &str = "#{pane_id} #{s/[^A-Za-z0-9-]/_/:@teamd_spawn} #{==:#{@teamd_pane_pid},#{pane_pid}} #{pane_start_command}";

/// A pane with our mark, in which nobody else has started anything since.
#[derive(Debug, PartialEq, Eq)]
struct TaggedPane {
    server: [String; 2],
    pane: String,
    spawn_id: String,
    /// Where its first process looks for its daemon.
    socket: PathBuf,
}

pub(super) fn check(here: &CommandContext, status: Option<&StatusReply>, report: &mut DoctorReport) {
    let marked: Vec<TaggedPane> = candidate_servers(status).iter().flat_map(tagged_panes).collect();
    // After the panes: a life that has begun meanwhile is in there.
    let (Ok(socket), Ok(place)) = (here.socket(), here.directories()) else { return };
    let Some(lives) = place.state_dir.parent().and_then(spawns_in_all_rosters) else { return };
    let Some(shown) = panes_of_daemon(here) else { return };
    let is_left = |one: &&TaggedPane| {
        let known = lives.contains(&one.spawn_id) || shown.contains(&one.pane);
        // A daemon of another state directory.
        let others = one.socket != socket && UnixStream::connect(&one.socket).is_ok();
        !known && !others
    };
    let left: Vec<&TaggedPane> = marked.iter().filter(is_left).collect();
    if left.is_empty() {
        report.ok("panes", "every pane with our mark is of an agent that a roster knows");
    }
    for one in left {
        let message =
            format!("pane {} is of the agent's life {}, which no roster knows", one.pane, one.spawn_id);
        report.warn("panes", message, format!("see what runs there; to close it: {}", one.close_command()));
    }
}

impl TaggedPane {
    fn parse(server: &[String; 2], line: &str) -> Option<TaggedPane> {
        let mut fields = line.splitn(4, ' ');
        let [pane, life, same, command] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        // Who started it anew with a command of their own has it as theirs.
        let ours = !life.is_empty() && words.any(|word| word == life) && words.next() == Some("--socket");
        let socket = words.next().filter(|_| ours && same == "1")?.into();
        Some(TaggedPane { server: server.clone(), pane: pane.to_owned(), spawn_id: life.to_owned(), socket })
    }

    /// For a shell; on a pane that has another mark by then it does nothing.
    fn close_command(&self) -> String {
        let [flag, name] = &self.server;
        let (name, pane, life) = (name.replace('\'', r"'\''"), &self.pane, &self.spawn_id);
        format!(
            "tmux {flag} '{name}' if-shell -F -t {pane} '#{{==:#{{@teamd_spawn}},{life}}}' 'kill-pane -t {pane}'"
        )
    }
}

/// Those that a daemon may have had panes on, each once.
fn candidate_servers(status: Option<&StatusReply>) -> Vec<[String; 2]> {
    let daemons = status.and_then(|status| status.daemon.tmux.clone());
    let callers = env_var("TMUX").and_then(|tmux| tmux.split(',').next().map(PathBuf::from));
    let mut paths: Vec<PathBuf> = daemons.into_iter().chain(callers).collect();
    paths.dedup();
    let by_path = paths.iter().map(|path| ["-S".to_owned(), path.to_string_lossy().into_owned()]);
    let usual = ["-L".to_owned(), TMUX_NAME.to_owned()];
    let is_usual = |path: &PathBuf| path.file_name().is_some_and(|name| name == TMUX_NAME);
    by_path.chain((!paths.iter().any(is_usual)).then_some(usual)).collect()
}

/// Nothing of a server that is not there.
fn tagged_panes(server: &[String; 2]) -> Vec<TaggedPane> {
    let listed =
        tmux_target::tmux_output(server, &["list-panes", "-a", "-F", PANE_FORMAT]).unwrap_or_default();
    let mut all: Vec<TaggedPane> =
        listed.lines().filter_map(|line| TaggedPane::parse(server, line)).collect();
    // A window that several sessions show is listed in each.
    all.sort_by(|a, b| a.pane.cmp(&b.pane));
    all.dedup();
    all
}

/// Of every root of this user; none where one can't be read: it may be in that.
fn spawns_in_all_rosters(states: &Path) -> Option<Vec<String>> {
    let states = std::fs::read_dir(states).into_iter().flatten().flatten().map(|entry| entry.path());
    let with_roster =
        states.filter(|state| state.join(protocol::roster_file::RosterFile::FILE_NAME).exists());
    with_roster
        .map(|state| Some(store::read_roster_file(&state)?.spawn_ids()))
        .collect::<Option<Vec<_>>>()
        .map(|lives| lives.concat())
}

/// The panes that the daemon tells of; none where somebody begins whose pane it has not heard of.
fn panes_of_daemon(here: &CommandContext) -> Option<Vec<String>> {
    let Ok(Reply::Status(status)) = here.daemon_status() else { return Some(Vec::new()) };
    let members = || status.teams.iter().flat_map(|team| &team.members);
    let unheard = members().any(|member| member.lifecycle == "starting" && member.pane.is_none());
    (!unheard).then(|| members().filter_map(|member| member.pane.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_pane_is_one_whose_first_process_is_still_ours() {
        let server = ["-S", "/tmp/it's/s"].map(str::to_owned);
        let of = |line: &str| {
            TaggedPane::parse(&server, line).map(|one| (one.spawn_id.clone(), one.socket.clone()))
        };
        let join = r#"%5 a-1 1 "/opt/teamd-shim" run a-1 --socket /run/s"#;
        assert_eq!(of(join), Some(("a-1".to_owned(), "/run/s".into())));
        for line in [
            "%5  1 -zsh",
            "%5 a-1 0 teamd-shim run a-1 --socket /run/s",
            "%5 a-1 1 -zsh",
            "%5 a-1 1 teamd-shim run b-2 --socket /run/s",
            "",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        let close =
            r"tmux -S '/tmp/it'\''s/s' if-shell -F -t %5 '#{==:#{@teamd_spawn},a-1}' 'kill-pane -t %5'";
        assert_eq!(TaggedPane::parse(&server, join).unwrap().close_command(), close);
    }
}
