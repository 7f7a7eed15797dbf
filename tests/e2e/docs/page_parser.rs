//! A page, taken apart into what somebody does who follows it: what is typed, with what it prints, and which files are
//! made. No command hides from this: where a fence is of no known language, or a block that is not typed has a command
//! in it, the page is at fault.
//!
//! - `console`: what stands behind `$ ` is typed, and prints what stands below it, if anything does.
//! - `sh`: each line is typed.
//! - A block below a line that ends in `` `PATH`: `` is that file; one of `sh` only if it begins with `#!`.
//! - `<!-- not run: REASON -->` right above a fence leaves that block out.

/// Why a block may be left out.
const REASONS: [&str; 4] =
    ["needs macOS", "needs systemd", "needs a network", "needs an installed agent program"];

/// What blocks are shown, not typed.
const SHOWN: [&str; 6] = ["", "json", "markdown", "rust", "text", "toml"];

/// How a line begins that somebody would type.
const COMMANDS: [&str; 6] = ["$ ", "cargo ", "git ", "make ", "teamctl ", "teamd "];

/// What somebody does who follows a page; lines count from 1.
#[derive(Debug, PartialEq)]
pub(super) enum DocStep {
    Type { line: usize, command: String, prints: String },
    Write { line: usize, path: String, text: String },
    NotRun { line: usize, why: String },
}

#[derive(Debug)]
pub(super) struct DocPage {
    pub(super) steps: Vec<DocStep>,
}

/// What stands between two fences.
struct CodeBlock<'a> {
    /// Of its first line.
    line: usize,
    language: &'a str,
    text: Vec<&'a str>,
    /// The line right above, and the last one above that is not empty.
    mark: &'a str,
    lead: &'a str,
}

impl DocPage {
    /// What is wrong with a page is told as `LINE: …`.
    pub(super) fn read(text: &str) -> Result<DocPage, String> {
        let steps = blocks(text)?.iter().map(CodeBlock::steps).collect::<Result<Vec<_>, _>>()?;
        Ok(DocPage { steps: steps.into_iter().flatten().collect() })
    }

    pub(super) fn skipped_blocks(&self) -> impl Iterator<Item = (usize, &str)> {
        self.steps.iter().filter_map(|step| match step {
            DocStep::NotRun { line, why } => Some((*line, why.as_str())),
            _ => None,
        })
    }
}

fn blocks(text: &str) -> Result<Vec<CodeBlock<'_>>, String> {
    let (mut all, mut open): (Vec<CodeBlock>, Option<CodeBlock>) = (Vec::new(), None);
    let (mut above, mut lead) = ("", "");
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), _) if line.starts_with(' ') => {
                return Err(format!("{}: a fence stands at the margin", number + 1));
            }
            (Some(_), Some(_)) => all.extend(open.take()),
            (Some(language), None) => {
                open = Some(CodeBlock { line: number + 2, language, text: Vec::new(), mark: above, lead });
            }
            (None, Some(block)) => block.text.push(line),
            (None, None) => {}
        }
        above = line;
        lead = if line.trim().is_empty() || open.is_some() { lead } else { line };
    }
    open.map_or(Ok(all), |block| Err(format!("{}: a fence is not closed", block.line - 1)))
}

impl CodeBlock<'_> {
    fn steps(&self) -> Result<Vec<DocStep>, String> {
        if let Some(why) = self.mark.strip_prefix("<!-- not run: ").and_then(|mark| mark.strip_suffix(" -->"))
        {
            let known = REASONS.contains(&why);
            let step = DocStep::NotRun { line: self.line, why: why.to_owned() };
            return if known { Ok(vec![step]) } else { Err(format!("{}: {why:?} is no reason", self.line)) };
        }
        if let Some(path) = self.path() {
            let (path, text) = (path.to_owned(), self.text.join("\n") + "\n");
            return Ok(vec![DocStep::Write { line: self.line, path, text }]);
        }
        match self.language {
            "console" => self.commands(),
            "sh" => Ok(self.lines().map(|(line, text)| command_step(line, text)).collect()),
            _ => self.files(),
        }
    }

    /// The file that this block is.
    fn path(&self) -> Option<&str> {
        let is_program = self.text.first().is_some_and(|first| first.starts_with("#!"));
        if self.language == "console" || self.language == "sh" && !is_program {
            return None;
        }
        let (_, path) = self.lead.strip_suffix("`:")?.rsplit_once('`')?;
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
                (None, Some(DocStep::Type { prints, .. })) => *prints += &format!("{text}\n"),
                (None, _) => return Err(format!("{line}: a console begins with what is typed")),
            }
        }
        Ok(steps)
    }

    fn files(&self) -> Result<Vec<DocStep>, String> {
        if !SHOWN.contains(&self.language) {
            return Err(format!("{}: {:?} is no language of ours", self.line, self.language));
        }
        let hidden = self.lines().find(|(_, text)| COMMANDS.iter().any(|command| text.starts_with(command)));
        hidden.map_or(Ok(Vec::new()), |(line, text)| Err(format!("{line}: nobody types this: {text}")))
    }
}

fn command_step(line: usize, command: &str) -> DocStep {
    DocStep::Type { line, command: command.to_owned(), prints: String::new() }
}

#[test]
fn invalid_page_is_rejected() {
    for (text, told) in [
        ("<!-- not run: no time -->\n```sh\nmake\n```\n", "3: \"no time\" is no reason"),
        ("```\nteamctl up\n```\n", "2: nobody types this"),
        ("```fish\nls\n```\n", "2: \"fish\" is no language"),
        ("```console\nprinted\n```\n", "2: a console begins"),
        ("- x\n  ```sh\n  make\n  ```\n", "2: a fence stands"),
        ("```sh\nmake\n", "1: a fence is not closed"),
    ] {
        assert!(DocPage::read(text).unwrap_err().starts_with(told), "{text}");
    }
    let marked = "<!-- not run: needs macOS -->\n```sh\nbrew\n```\n";
    let files = "In `a.sh`:\n\n```sh\n#!/bin/sh\n```\nIn `a.sh`:\n```sh\nx\n```\n";
    let page = DocPage::read(&format!("{marked}{files}")).unwrap();
    let why = "needs macOS".to_owned();
    let file = DocStep::Write { line: 8, path: "a.sh".to_owned(), text: "#!/bin/sh\n".to_owned() };
    assert_eq!(page.steps, [DocStep::NotRun { line: 3, why }, file, command_step(12, "x")]);
}
