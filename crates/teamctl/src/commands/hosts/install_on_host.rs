//! `teamctl hosts install`: copies the programs of this installation to another machine. A single
//! shell script on that machine prints its operating system and processor type, reads a tar archive
//! from standard input, tries the programs, and moves them to their places.

use super::host_connection::{AnswerDeadline, HostConnection};
use super::read_hosts::{HostSource, hosts_file_text};
use super::transport_command::OWN_VERSION;
use crate::command_context::CommandContext;
use crate::commands::ask_yes_or_no::ask_yes_or_no;
use crate::output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use protocol::hosts_file_entry::{Host, HostName};
use protocol::shell_quote::shell_quote;
use serde::Serialize;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use store::own_program;

/// The script for the shell of the other machine.
const SCRIPT: &str = include_str!("install_on_host.sh");

/// The programs of an installation, by their paths below its prefix.
const PROGRAMS: [&str; 6] = [
    "bin/teamctl",
    "bin/teamd",
    "libexec/teamd/teamd-shim",
    "libexec/teamd/teamd-acp",
    "libexec/teamd/teamd-mcp",
    "libexec/teamd/teamd-top",
];

/// How long the host may take to name itself.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long copying and trying the programs may take.
const COPY_TIMEOUT: Duration = Duration::from_secs(600);

/// The arguments.
#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// The host
    #[arg(value_name = "NAME")]
    name: String,
    /// Do not ask before the programs are copied
    #[arg(short, long)]
    yes: bool,
    /// Copy the programs of this prefix, which has bin/ and libexec/teamd/ [default: this
    /// installation]
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

/// What was installed, as in `--json`.
#[derive(Debug, Serialize)]
struct Installation {
    host: HostName,
    /// The directory with bin/ and libexec/ there.
    prefix: String,
    /// What the new `teamctl --version` prints there.
    version: String,
    files: [&'static str; 6],
    /// Where the replaced programs are. `None` if there were none.
    replaced: Option<String>,
    /// The `teamctl` that a command finds there. `None` if it finds none.
    found_in_path: Option<String>,
    undo: String,
}

pub(super) fn run(context: &CommandContext, args: &InstallArgs) -> Result<ExitCode, ErrorReport> {
    let source = HostSource::default();
    let hosts = match source.read(context)? {
        Ok(hosts) => hosts,
        Err(code) => return Ok(code),
    };
    let (name, host) = source.find(&hosts, &args.name)?;
    // Read before anything is sent: the host must never get a part of an archive.
    let archive = read_programs(&find_programs(args.from.as_deref())?)?;
    let mut connection = HostConnection::open(&name, &host, &["sh"])?;
    connection.send_line(SCRIPT);
    let machine = OtherMachine::receive(&mut connection, &name)?;
    if args.from.is_none() {
        machine.check_same_system(&name)?;
    }
    if !args.yes && !ask_user(&name, &host, &machine)? {
        output::print_warning("nothing was copied");
        return Ok(ExitCode::FAILURE);
    }
    let deadline = AnswerDeadline::after(COPY_TIMEOUT);
    let installation = copy_programs(connection, &name, &machine, archive, deadline)?;
    output::print_result(context, &json!(installation), &output::sanitize(&installation.text(&host)));
    Ok(ExitCode::SUCCESS)
}

/// The program files to copy, in the order of [`PROGRAMS`].
fn find_programs(prefix: Option<&Path>) -> Result<Vec<PathBuf>, ErrorReport> {
    let own = own_program()?;
    let path = |name: &str| match prefix {
        Some(prefix) => prefix.join(name),
        None => installed_program(&own, name.rsplit('/').next().unwrap_or(name), Path::is_file),
    };
    let check = |path: PathBuf| match path.is_file() {
        true => Ok(path),
        false => {
            let message = format!("cannot copy {}: there is no such program", path.display());
            Err(ErrorReport::new(ErrorKind::MissingPath, message)
                .with_help("install all programs: make install"))
        }
    };
    PROGRAMS.iter().map(|name| check(path(name))).collect()
}

/// What the shell there says about its machine.
struct OtherMachine {
    system: String,
    architecture: String,
    home: String,
    /// The `teamctl` that it finds in its `PATH`. Empty if there is none.
    teamctl: String,
}

impl OtherMachine {
    /// Receives the first line of the script. Skips what other programs have printed before.
    fn receive(connection: &mut HostConnection, name: &HostName) -> Result<OtherMachine, ErrorReport> {
        let deadline = AnswerDeadline::after(CONNECT_TIMEOUT);
        loop {
            let line = connection.receive_line("reach", deadline)?;
            let Some(rest) = line.strip_prefix("teamd-install\t") else { continue };
            let fields: Vec<String> = rest.split('\t').map(str::to_owned).collect();
            let [system, architecture, home, teamctl] = fields.try_into().map_err(|_| {
                ErrorReport::new(
                    ErrorKind::Io,
                    format!("cannot install on {name}: its home directory has a tab"),
                )
            })?;
            return Ok(OtherMachine { system, architecture, home, teamctl });
        }
    }

    /// Checks that the programs of this installation can run there.
    fn check_same_system(&self, name: &HostName) -> Result<(), ErrorReport> {
        let (system, architecture) = (own_system(), std::env::consts::ARCH);
        if self.system == system && rust_architecture(&self.architecture) == architecture {
            return Ok(());
        }
        let message = format!(
            "cannot install on {name}: it is {} {}, and this installation is for {system} {architecture}",
            self.system, self.architecture
        );
        let target = rust_architecture(&self.architecture);
        Err(ErrorReport::new(ErrorKind::Config, message).with_help(format!(
            "build teamd {OWN_VERSION} for {target}, for example in a clone there: make install \
             PREFIX=$HOME/.local; or copy such a build's prefix here: teamctl hosts install {name} --from DIR"
        )))
    }
}

/// The name of this system, as `uname -s` prints it.
fn own_system() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "freebsd" => "FreeBSD",
        other => other,
    }
}

/// Rust's name of an architecture that `uname -m` prints.
fn rust_architecture(machine: &str) -> &str {
    match machine {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        "i686" | "i586" | "i386" => "x86",
        "armv7l" | "armv6l" => "arm",
        other => other,
    }
}

fn ask_user(name: &HostName, host: &Host, machine: &OtherMachine) -> Result<bool, ErrorReport> {
    let present = match machine.teamctl.as_str() {
        "" => "its PATH has no teamctl".to_owned(),
        path => format!("its PATH has {path}"),
    };
    let question = format!(
        "Copy teamd {OWN_VERSION} to {}/.local on {name} ({}, {} {}; {present})? [y/N] ",
        machine.home,
        host.connect.join(" "),
        machine.system,
        machine.architecture
    );
    let yes = format!("to install without a question: teamctl hosts install {name} --yes");
    ask_yes_or_no(&question, &format!("whether to install on {name}"), &yes)
}

fn copy_programs(
    mut connection: HostConnection,
    name: &HostName,
    machine: &OtherMachine,
    archive: Vec<u8>,
    deadline: AnswerDeadline,
) -> Result<Installation, ErrorReport> {
    let mut stream = connection.take_stdin().expect("the stream was not taken yet");
    // A thread writes the archive, because a write blocks if the host stops reading. Meanwhile,
    // `receive_line` returns the answer of the host, or an error. After an error the connection is
    // dropped, which ends the transport and this thread.
    std::thread::spawn(move || stream.write_all(&archive));
    let line = connection.receive_line("install on", deadline)?;
    let install_error = |reason: &str| {
        ErrorReport::new(ErrorKind::Io, format!("cannot install on {name}: {reason}")).with_help(format!(
            "a static build runs on any system of its kind (docs/install.md); to try again: \
             teamctl hosts install {name}"
        ))
    };
    let fields: Vec<&str> = line.split('\t').collect();
    match fields[..] {
        ["installed", version, found, kept] => {
            let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let prefix = format!("{}/.local", machine.home);
            Ok(Installation {
                host: name.clone(),
                version: version.to_owned(),
                files: PROGRAMS,
                undo: undo_command(&prefix, kept),
                replaced: text(kept),
                found_in_path: text(found),
                prefix,
            })
        }
        ["failed", reason] => Err(install_error(reason)),
        _ => Err(install_error(&format!("it answered {line:?}"))),
    }
}

/// The tar archive of the program files, which are in the order of [`PROGRAMS`].
fn read_programs(programs: &[PathBuf]) -> Result<Vec<u8>, ErrorReport> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, path) in PROGRAMS.iter().zip(programs) {
        let mut append = || {
            let content = std::fs::read(path)?;
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o755);
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, name, &*content)
        };
        append().map_err(|error| ErrorReport::from_io("read", path, &error))?;
    }
    archive.into_inner().map_err(|error| ErrorReport::new(ErrorKind::Io, error.to_string()))
}

/// The command, to be typed on the host, that takes the installation back.
fn undo_command(prefix: &str, kept: &str) -> String {
    let path = |name: &str| shell_quote(&format!("{prefix}/{name}"));
    match kept {
        "" => format!("rm -r {} {} {}", path("bin/teamctl"), path("bin/teamd"), path("libexec/teamd")),
        kept => format!("cp -Rpf {} {}", shell_quote(&format!("{kept}/.")), shell_quote(prefix)),
    }
}

impl Installation {
    fn text(&self, host: &Host) -> String {
        let Installation { host: name, prefix, version, .. } = self;
        let mut lines =
            vec![format!("{version} is installed on {name}: bin/ and libexec/teamd/ in {prefix}.")];
        if let Some(replaced) = &self.replaced {
            lines.push(format!(
                "The programs before are in {replaced}. A daemon that runs there keeps the old ones"
            ));
            lines.push(format!(
                "until: teamctl --host {name} down --suspend; teamctl --host {name} up --resume"
            ));
        }
        lines.push(format!("To undo it, type on {name}: {}", self.undo));
        let installed = format!("{prefix}/bin/teamctl");
        if host.teamctl == "teamctl" && self.found_in_path.as_ref() != Some(&installed) {
            lines.push(format!(
                "Commands on {name} do not find it in their PATH. Add to [host.{name}] in {}: teamctl = {installed:?}",
                hosts_file_text()
            ));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::host_connection::tests::connect;
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn undo_command_is_quoted() {
        assert_eq!(
            undo_command("/home/a b/.local", ""),
            "rm -r '/home/a b/.local/bin/teamctl' '/home/a b/.local/bin/teamd' '/home/a b/.local/libexec/teamd'"
        );
        assert_eq!(
            undo_command("/home/a b/.local", "/home/a b/.local/libexec/teamd-old"),
            "cp -Rpf '/home/a b/.local/libexec/teamd-old/.' '/home/a b/.local'"
        );
        assert_eq!(undo_command("/h", "/old"), "cp -Rpf /old/. /h");
    }

    /// Runs the script with this archive in a home directory with a space. Returns its last line.
    fn run_script(home: &Path, archive: &[u8]) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]).env("HOME", home).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        child.stdin.take().unwrap().write_all(archive).unwrap();
        let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        output.lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn host_that_stops_reading_is_given_up_at_the_deadline() {
        let name = HostName::parse("box").unwrap();
        let mut connection = connect("printf 'teamd-install\\tLinux\\tx\\t/h\\t\\n'; exec sleep 3600");
        let machine = OtherMachine::receive(&mut connection, &name).unwrap();
        let deadline = AnswerDeadline::after(Duration::from_millis(300));
        let error = copy_programs(connection, &name, &machine, vec![0; 1 << 20], deadline).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "not below ROOT")]
    fn only_a_whole_archive_is_installed_and_a_failure_says_what_was_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (home, program) = (directory.path().join("a b"), directory.path().join("program"));
        std::fs::create_dir(&home).unwrap();
        std::fs::write(&program, "#!/bin/sh\necho teamctl 1.2.3\n").unwrap();
        let programs = [(); 6].map(|()| program.clone());
        // Without the last program and the end of the archive: each has one block and a header.
        let archive = read_programs(&programs).unwrap();
        let line = run_script(&home, &archive[..5 * 1024]);
        assert_eq!(line, "failed\tthe archive is not whole; nothing was replaced");
        let line = run_script(&home, &archive);
        assert!(line.starts_with("installed\tteamctl 1.2.3\t"), "{line}");
        let no_directory = home.join(".local/bin");
        std::fs::remove_dir_all(&no_directory).unwrap();
        std::fs::create_dir_all(no_directory.join("teamd/teamd")).unwrap();
        let line = run_script(&home, &archive);
        assert!(line.contains("cannot keep") && line.ends_with("; nothing was replaced"), "{line}");
        std::fs::remove_file(&program).unwrap();
        assert!(read_programs(&programs).unwrap_err().message.contains("program"));
    }
}
