//! `teamctl hosts`: lists the other machines of the hosts file, checks them, and installs teamd
//! there.
//!
//! Three hidden subcommands run on another machine, for a command here: `report` answers a check,
//! `exec` runs the command of `teamctl --host`, and `send-branch` sends the branch of a member. The
//! hidden subcommand `fetch-branch` runs here, and fetches the branch that `send-branch` sends.

pub(super) mod branch_records;
mod bundle_file;
mod check_host;
pub(super) mod command_with_json_output;
pub(super) mod connect_daemon;
mod exec_for_other_host;
pub(super) mod fetch_branches;
mod forget_host;
mod host_connection;
mod install_on_host;
mod print_checks;
pub(super) mod read_hosts;
mod receive_branch;
mod report_to_other_host;
mod send_branch;
pub(super) mod transport_command;

use crate::command_context::CommandContext;
use crate::output;
use check_host::check_host;
use protocol::control_socket::{HostCandidate, MemberHost};
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::{Host, HostName};
use protocol::parse_duration;
use protocol::shell_quote::shell_quote;
use read_hosts::HostSource;
use runner::HostTables;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// List, check or forget other machines, or install teamd there
///
/// Example: teamctl hosts check devbox
///
/// `teamctl --host NAME COMMAND` runs a command on another machine. ~/.config/teamd/hosts.toml says
/// how each machine is reached, for example `[host.devbox]` with `connect = "ssh -T devbox"` below
/// it. Further keys are `attach` (a connect command that opens a terminal), `root`, `teamctl` (its
/// path there), and, for `spawn --host any`, `labels` and `slots`. `[host.home]` has the `labels`
/// and `slots` of this machine. A run file can have the same tables.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl hosts\n  teamctl hosts install devbox\n  teamctl --host devbox status"
)]
pub(crate) struct HostsArgs {
    #[command(subcommand)]
    command: Option<HostsCommand>,
}

/// The default is `list`.
#[derive(Debug, clap::Subcommand)]
enum HostsCommand {
    /// List the hosts and how they are reached
    ///
    /// Example: teamctl hosts list
    List {
        /// Also list the hosts of this run file
        #[arg(long, value_name = "FILE")]
        run_file: Option<PathBuf>,
    },
    /// Check the connection to hosts and what is there
    ///
    /// Example: teamctl hosts check devbox
    ///
    /// If members of a team here run on a host, the daemon connects to the host with the connect
    /// command that the hosts file has now.
    ///
    /// Exit code 72: teamctl or tmux is missing there. 74: the host cannot be reached. 75: it does
    /// not answer in time. 78: it has another version.
    Check {
        /// The hosts [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// How long a host may take for each answer; at least 40 s for that about its programs
        #[arg(long, value_name = "D", default_value = "10s", value_parser = parse_duration::parse)]
        timeout: Duration,
        /// Also use the hosts of this run file
        #[arg(long, value_name = "FILE")]
        run_file: Option<PathBuf>,
    },
    /// Copy this installation to a host
    ///
    /// Example: teamctl hosts install devbox
    ///
    /// The programs are copied through the host's connect command to ~/.local there. If they work
    /// there, they replace an earlier installation, which is kept.
    Install(install_on_host::InstallArgs),
    /// Forget a host that is gone for good
    ///
    /// Example: teamctl hosts forget devbox
    ///
    /// Its members are deregistered, and their unfinished tasks released. Changes that it has not
    /// sent yet are lost. The command is refused (exit code 76) while this machine has contact with
    /// the host and members run there. If the host is used again, its daemon first ends the members
    /// that it still runs.
    Forget(forget_host::ForgetArgs),
    /// Answer a check of another machine
    ///
    /// Example: teamctl hosts report
    #[command(hide = true)]
    Report,
    /// Run a command for another machine
    ///
    /// Example: teamctl hosts exec 0.1.0
    #[command(hide = true)]
    Exec(exec_for_other_host::ExecArgs),
    /// Send the branch of a member to the home of its team
    ///
    /// Example: teamctl hosts send-branch ann
    #[command(hide = true)]
    SendBranch(send_branch::SendBranchArgs),
    /// Fetch the branch of a member on another host
    ///
    /// Example: teamctl hosts fetch-branch ann
    #[command(hide = true)]
    FetchBranch(fetch_branches::FetchBranchArgs),
}

pub(crate) fn run(context: &CommandContext, args: &HostsArgs) -> Result<ExitCode, ErrorReport> {
    match &args.command {
        None => list(context, &HostSource::default()),
        Some(HostsCommand::List { run_file }) => list(context, &HostSource::with_run_file(run_file.clone())),
        Some(HostsCommand::Check { names, timeout, run_file }) => {
            let source = HostSource::with_run_file(run_file.clone());
            check(context, &source, names, *timeout)
        }
        Some(HostsCommand::Install(args)) => install_on_host::run(context, args),
        Some(HostsCommand::Forget(args)) => forget_host::run(context, args),
        Some(HostsCommand::Report) => report_to_other_host::run(context),
        Some(HostsCommand::Exec(args)) => exec_for_other_host::run(args),
        Some(HostsCommand::SendBranch(args)) => send_branch::run(context, args),
        Some(HostsCommand::FetchBranch(args)) => fetch_branches::run(context, args),
    }
}

fn list(context: &CommandContext, source: &HostSource) -> Result<ExitCode, ErrorReport> {
    let hosts = match source.read(context)? {
        Ok(hosts) => hosts,
        Err(code) => return Ok(code),
    };
    if context.args.json {
        let entry = |(name, host): (&HostName, &Host)| {
            let mut entry = json!(host);
            entry["name"] = json!(name);
            entry["attach"] = json!(host.attach_command());
            entry
        };
        let mut object = json!({"hosts": hosts.hosts.iter().map(entry).collect::<Vec<_>>()});
        if let Some(home) = home_of(&hosts) {
            object["home"] = json!({"labels": home.labels, "slots": home.slots});
        }
        output::print_result(context, &object, "");
    } else if hosts.candidates.is_empty() {
        output::print_result(context, &json!({}), &source.no_hosts_text());
    } else if !context.args.quiet {
        let header = ["NAME", "CONNECT", "ROOT", "LABELS", "SLOTS"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(header)
            .chain(home_of(&hosts).map(home_row))
            .chain(hosts.hosts.iter().map(row))
            .collect();
        output::print_table(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

/// This machine, if a file describes it.
fn home_of(hosts: &HostTables) -> Option<&HostCandidate> {
    hosts.candidates.iter().find(|candidate| candidate.host == MemberHost::Home)
}

fn home_row(home: &HostCandidate) -> Vec<String> {
    cells([&home.host.to_string(), "", ""], (&home.labels, home.slots))
}

fn row((name, host): (&HostName, &Host)) -> Vec<String> {
    let connect: Vec<String> = host.connect.iter().map(|word| shell_quote(word)).collect();
    let root = host.root.as_deref().unwrap_or_default();
    cells([name.as_str(), &connect.join(" "), root], (&host.labels, host.slots))
}

fn cells(texts: [&str; 3], (labels, slots): (&[String], Option<u32>)) -> Vec<String> {
    let slots = slots.map(|slots| slots.to_string()).unwrap_or_default();
    let cells = texts.map(str::to_owned).into_iter().chain([labels.join(","), slots]);
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    cells.map(|cell| output::sanitize(&or_dash(cell))).collect()
}

fn check(
    context: &CommandContext,
    source: &HostSource,
    names: &[String],
    timeout: Duration,
) -> Result<ExitCode, ErrorReport> {
    let tables = match source.read(context)? {
        Ok(hosts) => hosts,
        Err(code) => return Ok(code),
    };
    let mut hosts = tables.hosts.clone();
    if !names.is_empty() {
        let chosen = names.iter().map(|name| source.find(&tables, name));
        hosts = chosen.collect::<Result<_, _>>()?;
    } else if hosts.is_empty() {
        output::print_result(context, &json!({"hosts": []}), &source.no_hosts_text());
        return Ok(ExitCode::SUCCESS);
    }
    let mut checks = std::thread::scope(|scope| {
        let threads: Vec<_> =
            hosts.iter().map(|(name, host)| scope.spawn(move || check_host(name, host, timeout))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
    });
    connect_daemon::connect_daemon(context, &mut checks);
    Ok(print_checks::print_checks(context, &checks))
}
