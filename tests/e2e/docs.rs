//! What the documents promise, typed as they print it: every command of README.md and docs/, page by page, each page in
//! a terminal, a repository and a house of its own.

mod book;
mod clone;
mod inline;
mod masks;
mod page;
mod session;
mod stand_ins;

use crate::mcp::there;

use page::{Page, Step};
use session::Session;

/// A test for each page that has something to type, and the list of them.
macro_rules! pages {
    ($($name:ident $path:literal)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test]
        fn $name() {
            type_page($path);
        })*
    };
}

pages! {
    readme_runs_as_printed "README.md"
    agents_runs_as_printed "docs/agents.md"
    claude_runs_as_printed "docs/claude.md"
    events_runs_as_printed "docs/events.md"
    install_runs_as_printed "docs/install.md"
    lead_runs_as_printed "docs/lead.md"
    recipes_runs_as_printed "docs/recipes.md"
    requests_runs_as_printed "docs/requests.md"
    run_runs_as_printed "docs/run.md"
    sixty_seconds_runs_as_printed "docs/sixty-seconds.md"
    team_file_runs_as_printed "docs/team-file.md"
    troubleshooting_runs_as_printed "docs/troubleshooting.md"
    when_runs_as_printed "docs/when.md"
    worktrees_runs_as_printed "docs/worktrees.md"
}

/// The text of a file of the repository.
fn document(path: &str) -> String {
    let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// README.md and every page of docs/.
fn documents() -> Vec<String> {
    let docs = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut all: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    all.push("README.md".to_owned());
    all.sort();
    all
}

#[allow(clippy::print_stdout, reason = "what is not run is told")]
fn type_page(path: &str) {
    let page = Page::read(&document(path)).unwrap_or_else(|fault| panic!("{path}:{fault}"));
    for (line, why) in page.not_run() {
        println!("{path}:{line}: not run: {why}");
    }
    let session = Session::open();
    if let Err(fault) = session.walk(&page) {
        panic!("{path}:{fault}\n{}", session.house.portrait());
    }
    session.end();
}

#[test]
fn no_page_with_commands_is_forgotten_and_what_is_not_run_is_counted() {
    let (mut typed, mut marked) = (0, 0);
    for path in documents() {
        let page = Page::read(&document(&path)).unwrap_or_else(|fault| panic!("{path}:{fault}"));
        let types = page.steps.iter().map(|step| u64::from(matches!(step, Step::Type { .. }))).sum::<u64>();
        assert_eq!(types > 0, PAGES.contains(&path.as_str()), "{path} has {types} commands");
        typed += types;
        marked += page.not_run().map(|_| 1).sum::<u64>();
    }
    harness::figure("commands_of_documents", typed);
    harness::figure("not_run_of_documents", marked);
}

#[test]
fn a_command_that_fails_and_one_that_prints_something_else_are_found() {
    let mut session = Session::open();
    session.patience = std::time::Duration::from_millis(50);
    let walk = |text: &str| session.walk(&Page::read(text)?);
    let console = |text: &str| walk(&format!("```console\n{text}\n```\n"));
    assert_eq!(console("$ echo one 2 pid 3\none 2 pid 4"), Ok(()), "a pid is another each time");
    assert_eq!(console("$ cd /\n$ export WORD=kept\n$ echo $PWD $WORD\n/ kept"), Ok(()), "it is one session");
    assert_eq!(console("$ (exit 3)\n$ echo $?\n3"), Ok(()), "the page tells the exit code");
    for (wrong, told) in [
        ("$ echo one\ntwo", "2: `echo one` prints"),
        ("$ echo one; echo two\none", "2: `echo one; echo two` prints"),
        ("$ echo one 2\none 3", "2: `echo one 2` prints"),
        ("$ true\n$ teamctl stauts", "3: `teamctl stauts` ends with 64"),
        ("$ (exit 3)\n$ echo $?\n4", "3: `echo $?` prints"),
        ("$ teamctl status\n$ echo $?\n0", "3: `echo $?` prints"),
        ("$ teamctl agents list\nnobody", "2: `teamctl agents list` prints"),
        ("$ echo 'open", "2: `echo 'open` ends with 2"),
    ] {
        let fault = console(wrong).unwrap_err();
        assert!(fault.starts_with(told), "{fault}");
    }
    assert!(walk("```sh\nfalse\n```\n").unwrap_err().starts_with("2: `false` ends with 1"));
    session.end();
}

#[test]
fn a_validator_that_is_not_ours_judges_the_samples_as_the_schemas_say() {
    let target = harness::programs().parent().unwrap();
    let Some(python) = there(target.join("python/bin/python")) else { return };
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut command = std::process::Command::new(python);
    command.current_dir(here).arg("tests/foreign/schemas.py");
    let output = command.args(["docs/schema", "crates/protocol/tests/data"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let seen: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(seen > 100, "{seen}");
}
