//! `teamctl man`: writes the man pages, one for `teamctl` and one for each command. The pages have
//! the same text as `--help`.

use crate::output::write_stdout;
use clap::Command;
use clap_mangen::Man as Generator;
use protocol::error_kind_and_report::ErrorReport;
use std::fs::{File, create_dir_all};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the man pages into a directory, or print them
///
/// Example: teamctl man ~/.local/share/man/man1
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl man | man -l -")]
pub(crate) struct ManArgs {
    /// Directory, which is created if it is missing [default: standard output]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// One man page.
struct ManPage {
    /// The name of the page, such as `teamctl-send`.
    name: String,
    roff: Vec<u8>,
}

/// `command` is the parser of the whole command line.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<ExitCode, ErrorReport> {
    let pages = all_pages(command);
    let Some(directory) = &args.directory else {
        return write_stdout(&pages.into_iter().flat_map(|page| page.roff).collect::<Vec<u8>>());
    };
    create_dir_all(directory).map_err(|error| ErrorReport::from_io("create", directory, &error))?;
    for ManPage { name, roff } in pages {
        let path = directory.join(format!("{name}.1"));
        let mut file = File::create(&path).map_err(|error| ErrorReport::from_io("create", &path, &error))?;
        file.write_all(&roff).map_err(|error| ErrorReport::from_io("write", &path, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn all_pages(mut teamctl: Command) -> Vec<ManPage> {
    teamctl.build();
    let mut pages = Vec::new();
    add_pages(&teamctl, "teamctl", &mut pages);
    pages
}

/// Adds the page of `command`, then those of its subcommands.
fn add_pages(command: &Command, name: &str, pages: &mut Vec<ManPage>) {
    let mut roff = Vec::new();
    let result = Generator::new(command.clone().display_name(name.to_owned())).render(&mut roff);
    result.expect("writing into memory does not fail");
    pages.push(ManPage { name: name.to_owned(), roff });
    let commands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    commands
        .for_each(|subcommand| add_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), pages));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_has_a_page_with_an_example() {
        let hidden = Command::new("internal").hide(true);
        let pages = all_pages(Cli::command().subcommand(hidden));
        let command = Cli::command();
        for name in command.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name)
        {
            let page = pages.iter().find(|page| page.name == format!("teamctl-{name}"));
            let text = page.map(|page| String::from_utf8_lossy(&page.roff).into_owned()).unwrap_or_default();
            assert!(text.contains("Example: "), "{name}");
        }
        let page = |name: &str| pages.iter().find(|page| page.name == name);
        let text = |name: &str| page(name).map(|page| String::from_utf8_lossy(&page.roff).into_owned());
        assert!(
            text("teamctl-spawn").is_some_and(|text| text.contains("Claude Code as in its own agent teams"))
        );
        assert!(text("teamctl-task-create").is_some() && text("teamctl-notify").is_some());
        assert!(page("teamctl-internal").is_none());
    }
}
