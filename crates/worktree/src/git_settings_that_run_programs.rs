//! Lists git's settings that run a program or use the network, and how teamd disables each of them.
//!
//! A member can change the configuration of its repository. So the member could make teamd's git
//! run any program, even after the member has ended. Therefore every git command of this crate runs
//! with these settings disabled. The only exception is the command that creates a worktree: it runs
//! filters and hooks, as it does for the user.
//!
//! Invariant: except to create a worktree, no git command runs a program that the repository's
//! configuration names. The test `no_look_runs_a_program_of_the_repository` checks this.
//! `documented_settings_are_classified` compares the list with the documentation of the installed
//! git.

/// Why a setting runs no program when teamd calls git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// teamd overrides the setting with this value.
    Value(&'static str),
    /// The key of the setting contains a name that anyone can choose, as in `filter.NAME.clean`.
    /// teamd reads these names from the configuration and overrides the setting for each name
    /// (`disable_filters_and_hooks_of_repository`).
    PerName,
    /// Only a transfer over the network uses the setting, and [`NO_NETWORK_VARIABLES`] forbid all
    /// transfers.
    NoTransfer,
    /// teamd switches the setting off by an option, or by another setting, in each git command that
    /// uses it.
    Option,
    /// Only some git commands use the setting, such as commands that send mail or start a browser.
    /// teamd never calls these commands, or calls them only to create a worktree.
    OtherCommands,
}

/// Environment variables with which git cannot use the network: it fetches no missing objects of a
/// partial clone, and uses no transfer protocol. They are set for all git commands that must run no
/// programs of the repository.
pub(crate) const NO_NETWORK_VARIABLES: [(&str, &str); 2] =
    [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// All settings of git that run a program or use the network, each with the reason why it runs no
/// program when teamd calls git. The keys are written as in git's documentation.
pub(crate) const PROGRAM_SETTINGS: [(&str, Guard); 62] = [
    ("alias.*", Guard::OtherCommands),
    ("alias.*.command", Guard::OtherCommands),
    ("browser.<tool>.cmd", Guard::OtherCommands),
    ("browser.<tool>.path", Guard::OtherCommands),
    ("core.alternateRefsCommand", Guard::NoTransfer),
    ("core.askPass", Guard::NoTransfer),
    ("core.editor", Guard::Option),
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
    ("gc.recentObjectsHook", Guard::Option),
    ("gpg.<format>.program", Guard::Option),
    ("gpg.program", Guard::Option),
    ("gpg.ssh.defaultKeyCommand", Guard::Option),
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
    ("merge.<driver>.driver", Guard::PerName),
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
    ("sequence.editor", Guard::Option),
    ("submodule.<name>.update", Guard::OtherCommands),
    ("tar.<format>.command", Guard::OtherCommands),
    ("transfer.bundleURI", Guard::NoTransfer),
    ("trailer.<keyAlias>.cmd", Guard::OtherCommands),
    ("trailer.<keyAlias>.command", Guard::OtherCommands),
    ("uploadpack.packObjectsHook", Guard::NoTransfer),
    ("web.browser", Guard::OtherCommands),
];

/// The arguments of git that override the settings with [`Guard::Value`] and switch the pager off.
pub(crate) fn override_arguments() -> impl Iterator<Item = String> {
    let overrides = PROGRAM_SETTINGS.iter().filter_map(|(key, guard)| match guard {
        Guard::Value(value) => Some(["-c".to_owned(), format!("{key}={value}")]),
        Guard::PerName | Guard::NoTransfer | Guard::Option | Guard::OtherCommands => None,
    });
    overrides.flatten().chain(["--no-pager".to_owned()])
}
