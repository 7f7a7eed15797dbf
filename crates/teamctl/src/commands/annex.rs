//! `teamctl annex`: lets another machine, the home of a team, run members on this host. The home
//! starts this command here. The command starts the daemon of this host if none runs, and connects
//! standard input and output to the daemon.

use crate::command_context::CommandContext;
use crate::output;
use client::connection::Connection;
use client::select_tmux_server::{TMUX_NAME, TmuxTarget};
use client::start_daemon_unless_running::{DaemonStart, start_unless_running};
use profile::ProfileRegistry;
use protocol::control_socket::{Call, ConnectHomeRequest, FIRST_LINK_GENERATION, HomeId, Request, Response};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// How long the daemon may take to accept the connection.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

const BUFFER_BYTES: usize = 64 * 1024;

/// Run members of a team whose home is another machine
///
/// Example: teamctl annex --stdio 5f0c devbox
///
/// The home runs this command, for example by ssh. Standard input and output carry only the frames
/// of the link.
#[derive(Debug, clap::Args)]
pub(crate) struct AnnexArgs {
    /// Use standard input and output
    #[arg(long, required = true)]
    stdio: bool,
    /// Identity of the home
    #[arg(value_parser = parse_home)]
    home: HomeId,
    /// Name of this host in the hosts file of the home
    #[arg(value_name = "HOST", value_parser = parse_host)]
    annex: HostName,
    /// Generation of the link, if the home has forgotten this host before
    #[arg(default_value_t = FIRST_LINK_GENERATION)]
    generation: u32,
}

fn parse_home(text: &str) -> Result<HomeId, String> {
    HomeId::try_from(text.to_owned())
}

fn parse_host(text: &str) -> Result<HostName, String> {
    HostName::try_from(text.to_owned())
}

pub(crate) fn run(context: &CommandContext, args: AnnexArgs) -> Result<ExitCode, ErrorReport> {
    let server = TmuxTarget::CallerOrNamed(TMUX_NAME.to_owned());
    match start_unless_running(context, &server, &|| ProfileRegistry::for_user().daemon_options())? {
        DaemonStart::AlreadyRunning(_) => {}
        DaemonStart::Started { warnings, .. } => {
            warnings.iter().for_each(|warning| output::print_warning(warning));
        }
        DaemonStart::Failed { code, message } => {
            output::print_daemon_failure(&message);
            return Ok(ExitCode::from(code));
        }
    }
    let mut connection = context.daemon_address()?.open()?;
    connect_home(context, &mut connection, args)?;
    let (received, stream) = connection.into_stream()?;
    carry_frames(&received, stream).map_err(|error| {
        ErrorReport::new(ErrorKind::Io, format!("cannot use standard input and output: {error}"))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Makes `connection` the link to the home.
fn connect_home(
    context: &CommandContext,
    connection: &mut Connection,
    args: AnnexArgs,
) -> Result<(), ErrorReport> {
    connection.set_timeout(REPLY_TIMEOUT)?;
    let request = Request::ConnectHome(ConnectHomeRequest {
        home: args.home,
        annex: args.annex,
        generation: args.generation,
    });
    let root = Some(context.root_path()?.to_string_lossy().into_owned());
    match connection.call(&Call { root, token: context.token(), ..Call::new(request) })? {
        Response::Done(_) => Ok(()),
        Response::Failed(error) => Err(error),
    }
}

/// Copies bytes from standard input to the daemon, and from the daemon to standard output, until
/// one side ends. `received` has the bytes that the daemon sent directly after its reply to
/// `ConnectHome`. They were read together with the reply, so `stream` no longer has them.
fn carry_frames(received: &[u8], mut stream: UnixStream) -> std::io::Result<()> {
    let mut to_daemon = stream.try_clone()?;
    let copy_input = move || {
        copy(&mut std::io::stdin().lock(), &mut to_daemon).ok();
        // The daemon closes its side too, which ends the copy of the output.
        to_daemon.shutdown(Shutdown::Both).ok();
    };
    std::thread::Builder::new().spawn(copy_input)?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(received)?;
    stdout.flush()?;
    copy(&mut stream, &mut stdout)
}

/// Copies until the end, and passes each part on at once.
fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
