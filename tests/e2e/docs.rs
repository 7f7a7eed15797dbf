//! Runs every command of README.md and docs/ and compares the output with the page. Each page has
//! its own terminal, repository and test environment.

pub(crate) mod fake_programs;
mod inline_commands;
mod links;
mod output_match;
mod page_parser;
mod quickstart;
mod shell_session;

use crate::mcp::is_installed;
use harness::{Facility, skips_without};

use page_parser::{DocPage, DocStep};
use shell_session::ShellSession;

/// Declares a test for each page with commands, and the list of these pages.
macro_rules! pages {
    ($($name:ident $path:literal)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test]
        fn $name() {
            run_page($path);
        })*
    };
}

pages! {
    readme_runs_as_printed "README.md"
    agents_runs_as_printed "docs/agents.md"
    ask_runs_as_printed "docs/ask.md"
    claude_runs_as_printed "docs/claude.md"
    events_runs_as_printed "docs/events.md"
    hosts_runs_as_printed "docs/hosts.md"
    install_runs_as_printed "docs/install.md"
    lead_runs_as_printed "docs/lead.md"
    machines_runs_as_printed "docs/machines.md"
    manage_runs_as_printed "docs/manage.md"
    night_runs_as_printed "docs/night.md"
    own_agents_runs_as_printed "docs/own-agents.md"
    recipes_runs_as_printed "docs/recipes.md"
    requests_runs_as_printed "docs/requests.md"
    run_runs_as_printed "docs/run.md"
    sixty_seconds_runs_as_printed "docs/sixty-seconds.md"
    troubleshooting_runs_as_printed "docs/troubleshooting.md"
    when_runs_as_printed "docs/when.md"
    worktrees_runs_as_printed "docs/worktrees.md"
}

/// The text of a file of the repository.
fn read_document(path: &str) -> String {
    let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// README.md and every page of docs/.
fn document_paths() -> Vec<String> {
    let docs = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut paths: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    paths.push("README.md".to_owned());
    paths.sort();
    paths
}

#[allow(clippy::print_stdout, reason = "the test prints the commands that it skips")]
fn run_page(path: &str) {
    // The page shows that a task failed twice, of which the daemon may see only the second failure.
    if path == "docs/night.md" && skips_without(Facility::NamesInFileEvents) {
        return;
    }
    let page = DocPage::read(&read_document(path)).unwrap_or_else(|error| panic!("{path}:{error}"));
    for (line, reason) in page.skipped_blocks() {
        println!("{path}:{line}: not run: {reason}");
    }
    let session = ShellSession::open();
    if let Err(error) = session.run_page(&page) {
        panic!("{path}:{error}\n{}", session.env.dump_state());
    }
    session.close();
}

#[test]
fn every_page_with_commands_is_tested() {
    let (mut command_count, mut skip_count) = (0, 0);
    for path in document_paths() {
        let page = DocPage::read(&read_document(&path)).unwrap_or_else(|error| panic!("{path}:{error}"));
        let commands =
            page.steps.iter().map(|step| u64::from(matches!(step, DocStep::Type { .. }))).sum::<u64>();
        assert_eq!(commands > 0, PAGES.contains(&path.as_str()), "{path} has {commands} commands");
        command_count += commands;
        skip_count += page.skipped_blocks().map(|_| 1).sum::<u64>();
    }
    harness::record_result("commands_of_documents", command_count);
    harness::record_result("not_run_of_documents", skip_count);
}

#[test]
fn failing_command_and_wrong_output_are_detected() {
    let mut session = ShellSession::open();
    session.retry_timeout = std::time::Duration::from_millis(50);
    let run_text = |text: &str| session.run_page(&DocPage::read(text)?);
    let run_console = |text: &str| run_text(&format!("```console\n{text}\n```\n"));
    assert_eq!(run_console("$ echo one 2 pid 3\none 2 pid 4"), Ok(()), "another pid is accepted");
    assert_eq!(
        run_console("$ cd /\n$ export WORD=kept\n$ echo $PWD $WORD\n/ kept"),
        Ok(()),
        "all commands run in one shell"
    );
    assert_eq!(run_console("$ (exit 3)\n$ echo $?\n3"), Ok(()), "a page can show an exit code other than 0");
    for (text, message) in [
        ("$ echo one\ntwo", "2: `echo one` prints"),
        ("$ echo one; echo two\none", "2: `echo one; echo two` prints"),
        ("$ echo one 2\none 3", "2: `echo one 2` prints"),
        ("$ true\n$ teamctl stauts", "3: `teamctl stauts` ends with 64"),
        ("$ (exit 3)\n$ echo $?\n4", "3: `echo $?` prints"),
        ("$ teamctl status\n$ echo $?\n0", "3: `echo $?` prints"),
        ("$ teamctl profiles list\nnobody", "2: `teamctl profiles list` prints"),
        ("$ echo 'open", "2: `echo 'open` ends with 2"),
    ] {
        let error = run_console(text).unwrap_err();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(run_text("```sh\nfalse\n```\n").unwrap_err().starts_with("2: `false` ends with 1"));
    session.close();
}

#[test]
fn samples_validate_with_a_foreign_validator() {
    let target = harness::programs().parent().unwrap();
    let Some(python) = is_installed(target.join("python/bin/python")) else { return };
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut command = std::process::Command::new(python);
    command.current_dir(repository).arg("tests/compat/validate_schemas.py");
    let output = command.args(["docs/schema", "crates/protocol/tests/data"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let count: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(count > 100, "{count}");
}
