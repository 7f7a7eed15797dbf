//! Describes a profile without reference to a member, for `teamctl profiles` and its checks.

use crate::profile::{InstructionDelivery, Profile, ProgramSpec};
use crate::required_program_settings::SettingsEntry;
use protocol::delivery_kind::Delivery;
use std::collections::BTreeSet;

impl Profile {
    /// How messages reach the program.
    pub fn delivery(&self) -> Delivery {
        self.program_spec().map_or(Delivery::Turn, |program| program.delivery.delivery())
    }

    /// The program. `None` for the built-in worker.
    pub fn program(&self) -> Option<&str> {
        self.program_spec().map(|program| program.program.as_str())
    }

    /// Program and arguments, with their template variables.
    pub fn argv(&self) -> Vec<String> {
        let program = self.program_spec();
        program.map_or_else(Vec::new, |program| {
            [&program.program].into_iter().chain(&program.args).cloned().collect()
        })
    }

    /// The command line that continues a session: with delivery `turn`, for each turn of a session
    /// after the first one; with delivery `native` or `hook`, for a respawn that resumes the
    /// session. Empty if the profile has no `resume_args`. The caller then uses [`Profile::argv`].
    pub fn resume_argv(&self) -> Vec<String> {
        let program = self.program_spec().filter(|program| !program.delivery.resume_args().is_empty());
        program.map_or_else(Vec::new, |program| {
            [&program.program].into_iter().chain(program.delivery.resume_args()).cloned().collect()
        })
    }

    /// Whether a person must type a prompt before the agent gets its first message. This is the
    /// case if hooks deliver the messages at the end of each turn, and no argument of the program
    /// starts a first turn.
    pub fn needs_typed_prompt(&self) -> bool {
        let program = self.program_spec();
        program.is_some_and(|program| {
            program.delivery.delivery() == Delivery::Hook && program.prompt_args.is_empty()
        })
    }

    /// The entries that must be in the program's settings files so that it can take part in a team.
    pub fn settings_patches(&self) -> &[SettingsEntry] {
        self.program_spec().map_or(&[], |program| &program.settings)
    }

    /// The arguments that make the program print its version, and those that make it print its
    /// help. Either list is empty if the profile does not name such arguments.
    pub fn version_and_help(&self) -> (&[String], &[String]) {
        self.program_spec().map_or((&[], &[]), |program| (&program.version_args, &program.help_args))
    }

    /// The arguments that make the program check its login. It then exits with 0 if its user is
    /// logged in. Empty if the profile does not name such arguments.
    pub fn login_args(&self) -> &[String] {
        self.program_spec().map_or(&[], |program| &program.login_args)
    }

    /// Every option that teamd may pass to the program, except those that the profile lists as
    /// undocumented. The program's help should list all of them.
    pub fn options_expected_in_help(&self) -> BTreeSet<String> {
        let Some(program) = self.program_spec() else { return BTreeSet::new() };
        let options = program.arguments().filter_map(|argument| option_name(argument));
        options.filter(|option| !program.undocumented_options.contains(option)).collect()
    }
}

impl ProgramSpec {
    /// Every argument that teamd may pass to the program.
    fn arguments(&self) -> impl Iterator<Item = &String> {
        let instructions: &[String] = match &self.instructions {
            InstructionDelivery::Arguments(arguments) => arguments,
            InstructionDelivery::NotNeeded | InstructionDelivery::Prepended => &[],
        };
        let lists = [&self.args, &self.prompt_args, &self.mcp].into_iter().flatten();
        let optional = [&self.model, &self.allow, &self.deny].into_iter().flatten().flatten();
        let tables = self.modes.values().chain(self.agent_types.values()).flatten();
        lists.chain(self.delivery.resume_args()).chain(instructions).chain(optional).chain(tables)
    }
}

/// The name of the option, without its value. `None` if the argument is not an option.
fn option_name(argument: &str) -> Option<String> {
    let name = argument.split(['=', '{', ' ']).next().unwrap_or_default();
    let is_one = name.starts_with('-') && name.chars().any(|c| c.is_ascii_alphanumeric());
    is_one.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_profile::parse_profile;

    #[test]
    fn program_with_hooks_and_without_prompt_args_needs_a_typed_prompt() {
        let needs_prompt = |text: &str| parse_profile("x", "x.toml", text).unwrap().needs_typed_prompt();
        assert!(needs_prompt("delivery = \"hook\"\nprogram = \"p\"\n"));
        assert!(!needs_prompt("delivery = \"hook\"\nprogram = \"p\"\nprompt_args = [\"{prompt}\"]\n"));
    }

    #[test]
    fn options_are_the_arguments_with_a_dash_without_their_values() {
        let text = "delivery = \"hook\"\nprogram = \"p\"\nargs = [\"run\", \"-x\", \"{options}\", \"--\", \"-\"]\n\
                    prompt_args = [\"-i={prompt}\"]\nmodel = [\"--model={model}\"]\nallow = [\"--tool\", \"{tool}\"]\n\
                    modes = { plan = [\"--mode\", \"plan\"] }\nundocumented_options = [\"-x\"]\n";
        let profile = parse_profile("x", "x.toml", text).unwrap();
        let options: Vec<String> = profile.options_expected_in_help().into_iter().collect();
        assert_eq!(options, ["--mode", "--model", "--tool", "-i"]);
        assert_eq!((profile.delivery(), profile.program()), (Delivery::Hook, Some("p")));
    }
}
