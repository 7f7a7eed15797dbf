//! A profile as it is shown and checked, without a member that it is for.

use super::setup::Piece;
use super::{Instructions, Profile, Program, Runs};
use protocol::delivery::Delivery;
use std::collections::BTreeSet;

impl Profile {
    /// How its program is fed.
    pub(crate) fn feed(&self) -> Delivery {
        self.its_program().map_or(Delivery::Turn, |program| program.feed.kind())
    }

    /// What it starts; none for the worker, which is our own.
    pub(crate) fn program(&self) -> Option<&str> {
        self.its_program().map(|program| program.program.as_str())
    }

    /// Program and arguments with their blanks.
    pub(crate) fn argv(&self) -> Vec<String> {
        let program = self.its_program();
        program.map_or_else(Vec::new, |program| {
            [&program.program].into_iter().chain(&program.args).cloned().collect()
        })
    }

    /// Those of a later turn, or of a life after a failure; empty: the same.
    pub(crate) fn resume(&self) -> Vec<String> {
        let program = self.its_program().filter(|program| !program.feed.resume().is_empty());
        program.map_or_else(Vec::new, |program| {
            [&program.program].into_iter().chain(program.feed.resume()).cloned().collect()
        })
    }

    /// Its hooks hand it its mail when a turn ends, and nothing makes the first one.
    pub(crate) fn waits_for_words(&self) -> bool {
        let program = self.its_program();
        program.is_some_and(|program| program.feed.kind() == Delivery::Hook && program.prompt.is_empty())
    }

    /// What its settings must hold.
    pub(crate) fn setup(&self) -> &[Piece] {
        self.its_program().map_or(&[], |program| &program.setup)
    }

    /// The arguments that make it print its version, and its help; empty where nobody knows.
    pub(crate) fn version_and_help(&self) -> (&[String], &[String]) {
        self.its_program().map_or((&[], &[]), |program| (&program.version, &program.help))
    }

    /// Every option that it may be given and that its help should tell of.
    pub(crate) fn options_in_help(&self) -> BTreeSet<String> {
        let Some(program) = self.its_program() else { return BTreeSet::new() };
        let options = program.arguments().filter_map(|argument| option(argument));
        options.filter(|option| !program.hidden.contains(option)).collect()
    }

    fn its_program(&self) -> Option<&Program> {
        match &self.runs {
            Runs::Worker => None,
            Runs::Program(program) => Some(program),
        }
    }
}

impl Program {
    /// Every argument that it may be given.
    fn arguments(&self) -> impl Iterator<Item = &String> {
        let instructions: &[String] = match &self.instructions {
            Instructions::Arguments(arguments) => arguments,
            Instructions::None | Instructions::Ahead => &[],
        };
        let lists = [&self.args, &self.prompt, &self.mcp].into_iter().flatten();
        let optional = [&self.model, &self.allow, &self.deny].into_iter().flatten().flatten();
        let tables = self.modes.values().chain(self.types.values()).flatten();
        lists.chain(self.feed.resume()).chain(instructions).chain(optional).chain(tables)
    }
}

/// The option that an argument is, without its value.
fn option(argument: &str) -> Option<String> {
    let name = argument.split(['=', '{', ' ']).next().unwrap_or_default();
    let is_one = name.starts_with('-') && name.chars().any(|c| c.is_ascii_alphanumeric());
    is_one.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    #[test]
    fn a_program_with_hooks_that_takes_no_prompt_waits_for_words() {
        let waits = |text: &str| parse("x", "x.toml", text).unwrap().waits_for_words();
        assert!(waits("feed = \"hook\"\nprogram = \"p\"\n"));
        assert!(!waits("feed = \"hook\"\nprogram = \"p\"\nprompt = [\"{prompt}\"]\n"));
        assert!(!waits("feed = \"keys\"\nprogram = \"p\"\nready = [\">\"]\n"));
    }

    #[test]
    fn options_are_what_begins_with_a_dash_without_their_values() {
        let text = "feed = \"hook\"\nprogram = \"p\"\nargs = [\"run\", \"-x\", \"{options}\", \"--\", \"-\"]\n\
                    prompt = [\"-i={prompt}\"]\nmodel = [\"--model={model}\"]\nallow = [\"--tool\", \"{tool}\"]\n\
                    modes = { plan = [\"--mode\", \"plan\"] }\nhidden = [\"-x\"]\n";
        let profile = parse("x", "x.toml", text).unwrap();
        let options: Vec<String> = profile.options_in_help().into_iter().collect();
        assert_eq!(options, ["--mode", "--model", "--tool", "-i"]);
        assert_eq!((profile.feed(), profile.program()), (Delivery::Hook, Some("p")));
    }
}
