//! Parses a page into the steps of a person who follows it: commands with their output, and files
//! to write. A page is invalid if a fence has an unknown language, or if a block that is only shown
//! contains a command.
//!
//! - `console`: a line that begins with `$ ` is a command. The lines below it, if any, are its
//!   output.
//! - `sh`: each line is a command.
//! - `crontab`: each line with five fields and a command is a command, which runs as cron runs it.
//! - A block below a line that ends in `` `PATH`: `` is that file. A block of `sh` is a file only
//!   if it begins with `#!`.
//! - `<!-- not run: REASON -->` directly above a fence skips the block.

use protocol::shell_quote::shell_quote;

/// The valid reasons to skip a block.
const REASONS: [&str; 5] = [
    "needs macOS",
    "needs systemd",
    "needs a network",
    "needs an installed agent program",
    "needs a container engine",
];

/// The languages of blocks that are only shown.
const SHOWN: [&str; 6] = ["", "json", "markdown", "rust", "text", "toml"];

/// The beginnings of lines that are commands.
const COMMANDS: [&str; 6] = ["$ ", "cargo ", "git ", "make ", "teamctl ", "teamd "];

/// The environment that cron gives to a job, and `$CRON_VARIABLES`, which keep a job in the test
/// environment. A job starts in the home directory.
const CRON: &str =
    r#"cd ~ && exec env -i HOME="$HOME" LOGNAME=me SHELL=/bin/sh PATH=/usr/bin:/bin $CRON_VARIABLES"#;

/// A step of a person who follows a page. Lines count from 1.
#[derive(Debug, PartialEq)]
pub(super) enum DocStep {
    Type { line: usize, command: String, expected_output: String },
    Write { line: usize, path: String, text: String },
    NotRun { line: usize, reason: String },
}

#[derive(Debug)]
pub(super) struct DocPage {
    pub(super) steps: Vec<DocStep>,
}

/// The block between two fences.
struct CodeBlock<'a> {
    /// The number of its first line.
    line: usize,
    language: &'a str,
    text: Vec<&'a str>,
    /// The line directly above the fence.
    line_above: &'a str,
    /// The last line above the fence that is not empty.
    introduction: &'a str,
}

impl DocPage {
    /// # Errors
    ///
    /// Why the page is invalid, as `LINE: …`.
    pub(super) fn read(text: &str) -> Result<DocPage, String> {
        let steps = blocks(text)?.iter().map(CodeBlock::steps).collect::<Result<Vec<_>, _>>()?;
        Ok(DocPage { steps: steps.into_iter().flatten().collect() })
    }

    pub(super) fn skipped_blocks(&self) -> impl Iterator<Item = (usize, &str)> {
        self.steps.iter().filter_map(|step| match step {
            DocStep::NotRun { line, reason } => Some((*line, reason.as_str())),
            _ => None,
        })
    }
}

fn blocks(text: &str) -> Result<Vec<CodeBlock<'_>>, String> {
    let (mut blocks, mut open): (Vec<CodeBlock>, Option<CodeBlock>) = (Vec::new(), None);
    let (mut line_above, mut introduction) = ("", "");
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), _) if line.starts_with(' ') => {
                return Err(format!("{}: a fence must begin at the margin", number + 1));
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                open = Some(CodeBlock {
                    line: number + 2,
                    language,
                    text: Vec::new(),
                    line_above,
                    introduction,
                });
            }
            (None, Some(block)) => block.text.push(line),
            (None, None) => {}
        }
        line_above = line;
        introduction = if line.trim().is_empty() || open.is_some() { introduction } else { line };
    }
    open.map_or(Ok(blocks), |block| Err(format!("{}: a fence is not closed", block.line - 1)))
}

impl CodeBlock<'_> {
    fn steps(&self) -> Result<Vec<DocStep>, String> {
        if let Some(reason) =
            self.line_above.strip_prefix("<!-- not run: ").and_then(|text| text.strip_suffix(" -->"))
        {
            let is_known = REASONS.contains(&reason);
            let step = DocStep::NotRun { line: self.line, reason: reason.to_owned() };
            return if is_known {
                Ok(vec![step])
            } else {
                Err(format!("{}: {reason:?} is no valid reason", self.line))
            };
        }
        if let Some(path) = self.path() {
            let (path, text) = (path.to_owned(), self.text.join("\n") + "\n");
            return Ok(vec![DocStep::Write { line: self.line, path, text }]);
        }
        match self.language {
            "console" => self.commands(),
            "sh" => Ok(self.lines().map(|(line, text)| command_step(line, text)).collect()),
            "crontab" => self.cron_jobs(),
            _ => self.shown_steps(),
        }
    }

    /// The path of the file that this block contains. `None` if the block is no file.
    fn path(&self) -> Option<&str> {
        let is_program = self.text.first().is_some_and(|first| first.starts_with("#!"));
        if self.language == "console" || self.language == "sh" && !is_program {
            return None;
        }
        let (_, path) = self.introduction.strip_suffix("`:")?.rsplit_once('`')?;
        Some(path).filter(|path| !path.contains(' ') && path.contains('.') | path.contains('/'))
    }

    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.iter().enumerate();
        lines.map(|(number, text)| (self.line + number, *text)).filter(|(_, text)| !text.is_empty())
    }

    fn commands(&self) -> Result<Vec<DocStep>, String> {
        let mut steps: Vec<DocStep> = Vec::new();
        for (line, text) in self.lines() {
            match (text.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(command_step(line, command)),
                (None, Some(DocStep::Type { expected_output, .. })) => {
                    *expected_output += &format!("{text}\n");
                }
                (None, _) => return Err(format!("{line}: a console block begins with a command")),
            }
        }
        Ok(steps)
    }

    /// The jobs of a crontab. Each has the variables that the lines above it set (crontab(5)).
    fn cron_jobs(&self) -> Result<Vec<DocStep>, String> {
        let (mut steps, mut variables) = (Vec::new(), String::new());
        for (line, text) in self.lines().filter(|(_, text)| !text.starts_with('#')) {
            match (text.split_once('='), text.splitn(6, ' ').nth(5)) {
                (Some((name, value)), _) if !name.contains(' ') => {
                    variables += &format!(" {name}={}", shell_quote(value));
                }
                (_, Some(job)) if text.starts_with(|first: char| first == '*' || first.is_ascii_digit()) => {
                    let command = format!("({CRON}{variables} /bin/sh -c {})", shell_quote(job));
                    steps.push(command_step(line, &command));
                }
                _ => return Err(format!("{line}: {text:?} is no line of a crontab")),
            }
        }
        Ok(steps)
    }

    /// The steps of a block that is only shown: none.
    ///
    /// # Errors
    ///
    /// If the language is unknown, or if a line is a command.
    fn shown_steps(&self) -> Result<Vec<DocStep>, String> {
        if !SHOWN.contains(&self.language) {
            return Err(format!("{}: {:?} is no known language", self.line, self.language));
        }
        let hidden = self.lines().find(|(_, text)| COMMANDS.iter().any(|command| text.starts_with(command)));
        hidden.map_or(Ok(Vec::new()), |(line, text)| {
            Err(format!("{line}: a block that is only shown has a command: {text}"))
        })
    }
}

fn command_step(line: usize, command: &str) -> DocStep {
    DocStep::Type { line, command: command.to_owned(), expected_output: String::new() }
}

#[test]
fn invalid_page_is_rejected() {
    for (text, message) in [
        ("<!-- not run: no time -->\n```sh\nmake\n```\n", "3: \"no time\" is no valid reason"),
        ("```\nteamctl up\n```\n", "2: a block that is only shown has a command"),
        ("```fish\nls\n```\n", "2: \"fish\" is no known language"),
        ("```console\nprinted\n```\n", "2: a console block begins with a command"),
        ("```crontab\nteamctl run x.toml\n```\n", "2: \"teamctl run x.toml\" is no line of a crontab"),
        ("- x\n  ```sh\n  make\n  ```\n", "2: a fence must begin at the margin"),
        ("```sh\nmake\n", "1: a fence is not closed"),
    ] {
        assert!(DocPage::read(text).unwrap_err().starts_with(message), "{text}");
    }
    let skipped_block = "<!-- not run: needs macOS -->\n```sh\nbrew\n```\n";
    let files = "In `a.sh`:\n\n```sh\n#!/bin/sh\n```\nIn `a.sh`:\n```sh\nx\n```\n";
    let page = DocPage::read(&format!("{skipped_block}{files}")).unwrap();
    let reason = "needs macOS".to_owned();
    let file = DocStep::Write { line: 8, path: "a.sh".to_owned(), text: "#!/bin/sh\n".to_owned() };
    assert_eq!(page.steps, [DocStep::NotRun { line: 3, reason }, file, command_step(12, "x")]);
}

#[test]
fn jobs_of_a_crontab_have_its_variables() {
    let page = DocPage::read("```crontab\n# none\nA=b c\n0 3 * * 1-5 echo $A\n```\n").unwrap();
    let command = format!("({CRON} A='b c' /bin/sh -c 'echo $A')");
    assert_eq!(page.steps, [command_step(4, &command)]);
}
