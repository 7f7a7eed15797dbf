//! The settings of git that run a program or use the network, and what keeps each of them from doing so while
//! teamd only looks at a repository.
//!
//! A member can write to the configuration of its repository. A program that is named there would run outside
//! of the member's processes, also after the member has ended. Only the creation of a worktree runs programs,
//! as it does for the user.
//!
//! Invariant: no look at a repository runs a program that the repository's configuration names. The test
//! `no_look_runs_a_program_of_the_repository` checks this, and `documented_settings_are_classified` compares
//! the list with the documentation of the installed git.

/// What keeps a setting from having an effect in a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Each look overrides it by this value.
    Value(&'static str),
    /// A look overrides it for each name that the configuration has (`named_programs`).
    PerName,
    /// Only a transfer uses it, and [`LOOK_VARIABLES`] forbid all transfers.
    NoTransfer,
    /// The commands that would use it get options against it.
    Option,
    /// No look runs a command of git that uses it: an editor, a signature, a merge, a mail, a tool for people.
    OtherCommands,
}

/// Environment variables of each look. They forbid all transfers: a partial clone is not completed, and no
/// protocol can be used.
pub(crate) const LOOK_VARIABLES: [(&str, &str); 2] =
    [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// The keys as git's documentation writes them.
pub(crate) const PROGRAM_SETTINGS: [(&str, Guard); 62] = [
    ("alias.*", Guard::OtherCommands),
    ("alias.*.command", Guard::OtherCommands),
    ("browser.<tool>.cmd", Guard::OtherCommands),
    ("browser.<tool>.path", Guard::OtherCommands),
    ("core.alternateRefsCommand", Guard::NoTransfer),
    ("core.askPass", Guard::NoTransfer),
    ("core.editor", Guard::OtherCommands),
    ("core.fsmonitor", Guard::Value("false")),
    ("core.gitProxy", Guard::NoTransfer),
    ("core.hooksPath", Guard::Value("/dev/null")),
    ("core.pager", Guard::Option),
    ("core.sshCommand", Guard::NoTransfer),
    ("credential.helper", Guard::NoTransfer),
    ("diff.<driver>.command", Guard::Option),
    ("diff.<driver>.textconv", Guard::Option),
    ("diff.external", Guard::Option),
    ("diff.guitool", Guard::OtherCommands),
    ("diff.tool", Guard::OtherCommands),
    ("difftool.<tool>.cmd", Guard::OtherCommands),
    ("difftool.<tool>.path", Guard::OtherCommands),
    ("fetch.bundleURI", Guard::Value("")),
    ("filter.<driver>.clean", Guard::PerName),
    ("filter.<driver>.process", Guard::PerName),
    ("filter.<driver>.smudge", Guard::PerName),
    ("gc.recentObjectsHook", Guard::OtherCommands),
    ("gpg.<format>.program", Guard::OtherCommands),
    ("gpg.program", Guard::OtherCommands),
    ("gpg.ssh.defaultKeyCommand", Guard::OtherCommands),
    ("guitool.<name>.cmd", Guard::OtherCommands),
    ("help.browser", Guard::OtherCommands),
    ("hook.<name>.command", Guard::PerName),
    ("http.proxy", Guard::NoTransfer),
    ("imap.tunnel", Guard::OtherCommands),
    ("instaweb.browser", Guard::OtherCommands),
    ("instaweb.httpd", Guard::OtherCommands),
    ("interactive.diffFilter", Guard::OtherCommands),
    // With it, `git log` would run `gpg.program`.
    ("log.showSignature", Guard::Value("false")),
    ("man.<tool>.cmd", Guard::OtherCommands),
    ("man.<tool>.path", Guard::OtherCommands),
    ("man.viewer", Guard::OtherCommands),
    ("merge.<driver>.driver", Guard::OtherCommands),
    ("merge.guitool", Guard::OtherCommands),
    ("merge.tool", Guard::OtherCommands),
    ("mergetool.<tool>.cmd", Guard::OtherCommands),
    ("mergetool.<tool>.path", Guard::OtherCommands),
    ("pager.<cmd>", Guard::Option),
    ("remote.<name>.proxy", Guard::NoTransfer),
    ("remote.<name>.receivepack", Guard::NoTransfer),
    ("remote.<name>.uploadpack", Guard::NoTransfer),
    ("remote.<name>.vcs", Guard::NoTransfer),
    ("sendemail.ccCmd", Guard::OtherCommands),
    ("sendemail.headerCmd", Guard::OtherCommands),
    ("sendemail.smtpServer", Guard::OtherCommands),
    ("sendemail.toCmd", Guard::OtherCommands),
    ("sequence.editor", Guard::OtherCommands),
    ("submodule.<name>.update", Guard::OtherCommands),
    ("tar.<format>.command", Guard::OtherCommands),
    ("transfer.bundleURI", Guard::NoTransfer),
    ("trailer.<keyAlias>.cmd", Guard::OtherCommands),
    ("trailer.<keyAlias>.command", Guard::OtherCommands),
    ("uploadpack.packObjectsHook", Guard::NoTransfer),
    ("web.browser", Guard::OtherCommands),
];

/// The arguments of git that override settings in a look.
pub(crate) fn look_arguments() -> impl Iterator<Item = String> {
    let overrides = PROGRAM_SETTINGS.iter().filter_map(|(key, guard)| match guard {
        Guard::Value(value) => Some(["-c".to_owned(), format!("{key}={value}")]),
        Guard::PerName | Guard::NoTransfer | Guard::Option | Guard::OtherCommands => None,
    });
    overrides.flatten().chain(["--no-pager".to_owned()])
}
