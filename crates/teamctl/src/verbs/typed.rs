//! Commands that are printed to be typed: each works as it is printed, in the shell and at the place of whoever asked.

use crate::here::{Here, fault, variable};
use protocol::fault::Fault;
use protocol::name::TeamName;
use view::words::quoted;

/// How `teamctl` is to be typed here: with the options that whoever asked has typed, and the team where it takes that to
/// be understood.
#[derive(Debug, Default)]
pub(super) struct Typed(Vec<String>);

impl Typed {
    /// For what is about no one team.
    pub(super) fn at(here: &Here) -> Typed {
        let given =
            [("--root", "TEAMD_ROOT", &here.global.root), ("--socket", "TEAMD_SOCKET", &here.global.socket)];
        let option = |(option, name, given): (&str, &str, &Option<std::path::PathBuf>)| {
            let path = given.as_ref()?.display().to_string();
            (variable(name).as_ref() != Some(&path)).then(|| [option.to_owned(), path])
        };
        Typed(given.into_iter().filter_map(option).flatten().collect())
    }

    /// For what is about that team.
    pub(super) fn of(here: &Here, team: &TeamName) -> Result<Typed, Fault> {
        let Typed(mut options) = Typed::at(here);
        let teams = here.root()?.teams().map_err(fault)?;
        let is_only = !team.is_foreign() && teams.iter().filter(|name| !name.is_foreign()).count() == 1;
        if !is_only && variable("TEAMD_TEAM").as_deref() != Some(team.as_str()) {
            options.extend(["-t".to_owned(), team.to_string()]);
        }
        Ok(Typed(options))
    }

    /// The command of these words, the verb first.
    pub(super) fn teamctl(&self, words: &[&str]) -> String {
        let all = std::iter::once("teamctl").chain(words[..1].iter().copied());
        let all = all.chain(self.0.iter().map(String::as_str)).chain(words[1..].iter().copied());
        all.map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// The same about a name or an id, which others have chosen: it may look like an option.
    pub(super) fn about(&self, verb: &str, whom: &str, options: &[&str]) -> String {
        match whom.starts_with('-') {
            true => self.teamctl(&[&[verb], options, &["--", whom]].concat()),
            false => self.teamctl(&[&[verb, whom], options].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_typed_as_it_is_printed() {
        let typed = Typed(["--root", "/tmp/a b", "-t", "survey"].map(str::to_owned).to_vec());
        assert_eq!(typed.teamctl(&["why", "ann"]), "teamctl why --root '/tmp/a b' -t survey ann");
        assert_eq!(Typed::default().teamctl(&["logs", "a'b; rm -r ~"]), r"teamctl logs 'a'\''b; rm -r ~'");
    }

    #[test]
    fn what_looks_like_an_option_stands_behind_the_options() {
        let typed = Typed(["-t", "survey"].map(str::to_owned).to_vec());
        let deny = |id: &str| typed.about("deny", id, &["--reason", "R"]);
        assert_eq!(deny("perm-1"), "teamctl deny -t survey perm-1 --reason R");
        assert_eq!(deny("-1"), "teamctl deny -t survey --reason R -- -1");
    }
}
