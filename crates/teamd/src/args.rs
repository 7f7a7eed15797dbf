//! The daemon's command line.

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Parser, ValueEnum};
use protocol::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// Supervise the teams of one root in tmux panes
///
/// Runs in the foreground of a tmux pane and shows one line per event. SIGTERM, SIGINT and SIGHUP
/// end teamd and leave the agents running; the next teamd adopts them. `teamctl down` ends the
/// agents too. If tmux is not installed, teamd supervises only agents without panes.
#[derive(Debug, Parser)]
#[command(
    name = "teamd",
    version,
    after_help = "Examples:\n  teamd\n  teamd --root ~/work/.claude -L work\n  teamctl up        (starts it in a tmux session of its own)"
)]
pub(crate) struct Args {
    /// The directory that holds teams/ and tasks/ [default: $CLAUDE_CONFIG_DIR, else ~/.claude]
    #[arg(long, env = "TEAMD_ROOT", value_name = "DIR", hide_env_values = true)]
    pub(crate) root: Option<PathBuf>,
    /// The control socket [default: in the runtime directory, one per root]
    #[arg(long, env = "TEAMD_SOCKET", value_name = "PATH", hide_env_values = true, value_parser = absolute_path())]
    pub(crate) socket: Option<PathBuf>,
    /// The tmux server's socket [default: that of $TMUX]
    #[arg(short = 'S', value_name = "SOCKET", conflicts_with = "tmux_name", value_parser = absolute_path())]
    pub(crate) tmux_socket: Option<PathBuf>,
    /// The name of the tmux server, which is started if it does not run [default: the server of
    /// $TMUX, or else teamd]
    #[arg(short = 'L', value_name = "NAME")]
    pub(crate) tmux_name: Option<String>,
    /// The log file [default: a new file for each start, in logs/teamd in the state directory]
    #[arg(long, value_name = "FILE", value_parser = absolute_path())]
    pub(crate) log_file: Option<PathBuf>,
    /// Log format
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// What stored files survive. process: the kill of any process. ordered: also a power failure,
    /// after which a file has its old or its new content. power: also a power failure, after which
    /// a file has its new content
    #[arg(long, env = "TEAMD_DURABILITY", hide_env_values = true, value_name = "LEVEL", default_value = "process", value_parser = ["process", "ordered", "power"])]
    pub(crate) durability: String,
    /// Check whether the daemon could start, then exit
    #[arg(long, hide = true)]
    pub(crate) check: bool,
    /// Check whether this teamd decides as in the record of a team, then exit
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) check_record: Option<PathBuf>,
    /// Notify people when a turn has written nothing for this long, as in 90s, 10m or 2h; 0s: never
    #[arg(long, value_name = "D", default_value = "10m", value_parser = parse_duration::parse)]
    pub(crate) no_output_after: Duration,
    /// How long members may begin new turns while the home of their team (the host with the team's
    /// true files) cannot be reached; 0s: without limit
    #[arg(long, value_name = "D", default_value = "0s", value_parser = parse_duration::parse)]
    pub(crate) lease: Duration,
    /// Log debug messages
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Makes a path absolute, because the daemon leaves its working directory.
fn absolute_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(std::path::absolute)
}

/// The format of the log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}
