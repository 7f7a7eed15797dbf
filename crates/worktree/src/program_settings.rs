//! Lists git's settings that run a program or use the network, and says how teamd disables each of
//! them. A git command for which they are disabled is called a look.
//!
//! A member can change the configuration of its repository, and so could make teamd's git run any
//! program, even after the member has ended. So every git command of this crate is a look, with one
//! exception: to create a worktree, git runs filters and hooks as it does for the user.
//!
//! Invariant: no look at a repository runs a program that the repository's configuration names. The test
//! `no_look_runs_a_program_of_the_repository` checks this, and `documented_settings_are_classified` compares
//! the list with the documentation of the installed git.

/// Why a setting has no effect in a look, a git command that must run no programs of the
/// repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Each look overrides the setting by this value.
    Value(&'static str),
    /// A look overrides the setting for each name that the configuration has (`named_programs`).
    PerName,
    /// Only a transfer uses the setting, and [`LOOK_VARIABLES`] forbid all transfers.
    NoTransfer,
    /// The commands that would use the setting get options that switch it off.
    Option,
    /// Only git commands that teamd never runs in a look use the setting, such as those with an
    /// editor or a merge.
    OtherCommands,
}

/// Environment variables with which git cannot use the network, for commands that must run no
/// programs of the repository (looks). git then does not fetch missing objects of a partial clone,
/// and uses no transfer protocol.
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
