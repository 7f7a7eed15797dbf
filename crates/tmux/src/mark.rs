//! Marks on a pane: whose it is, and what its border says.
//!
//! They are pane options, so they stay with the pane when the user moves it to another window or session. Who starts it
//! anew with a command of their own gets it without them.
//!
//! A claimed pane stays when its process ends, until it is killed by its owner. Up to tmux 3.6, two panes of a window
//! that go in the same moment crash a server that has a control client, the active one's end being told when the
//! window has no pane left; so do two windows whose end is that of their session. Kills that come one by one do not.

use std::path::PathBuf;

use tmux_interface::{SetOption, TmuxCommand};

use crate::create::{dressing, made_by_split, split_script};
use crate::deadline::Deadline;
use crate::guard::{Guarded, any, both, only_if};
use crate::label::option;
use crate::record::recording;
use crate::script::Script;
use crate::{Created, Error, Label, Owner, PaneId, Server, WindowId};

/// What came of a claim, and with it.
#[derive(Debug)]
pub struct Claimed {
    /// As [`Server::claim`].
    pub claimed: Result<(), Error>,
    /// Whether its window, if that is new, is one of ours.
    pub dressed: Result<(), Error>,
    /// Whether the pane is recorded.
    pub recorded: Result<(), Error>,
    /// The pane that was asked for besides, if that was sent; after `Timeout` and `Lost` it may exist.
    pub next: Option<Result<Created, Error>>,
}

impl Server {
    /// Makes a pane `owner`'s and labels it, in one go. From now on it stays when its process ends.
    ///
    /// # Errors
    /// `NotOurs` if it is somebody else's already; `Failed` where the pane is gone.
    pub fn claim(&mut self, pane: PaneId, owner: &Owner, label: &Label) -> Result<(), Error> {
        let deadline = Deadline::of("claim a pane");
        let claim = self.claiming(pane, owner, label.script(pane))?;
        let reply = self.ask(&claim.script, deadline)?;
        claim.done(reply, deadline).map(drop)
    }

    /// [`Server::claim`] and [`Server::record`] for a pane that was just made, whose window becomes one of ours if it is new: then
    /// its border shows the panes' labels. And a split for the one that comes next, all in one round trip.
    ///
    /// # Errors
    /// `Invalid` for words that can't be spelled: then nothing was asked for. Else each has its own.
    pub fn claim_and_record(
        &mut self,
        Created { pane, window, first, .. }: Created,
        owner: &Owner,
        label: &Label,
        command: &[PathBuf],
        next: Option<(WindowId, &[String])>,
    ) -> Result<Claimed, Error> {
        let deadline = Deadline::of("claim a pane");
        let claim = self.claiming(pane, owner, label.script(pane).and(recording(pane, command)?))?;
        let mut scripts: Vec<Script> = first.then(|| dressing(window)).into_iter().collect();
        scripts.push(claim.script.clone());
        let ours = scripts.len();
        scripts.extend(next.map(|(window, argv)| split_script(window, argv)).transpose()?);
        // A pane is not made twice.
        let answers = match self.ask_each_once(&scripts, deadline) {
            Err(Error::Lost { .. }) => self.ask_each(&scripts[..ours], deadline),
            answers => answers,
        };
        let mut answers = match answers {
            Err(error) => {
                let sent = matches!(error, Error::Timeout { .. } | Error::Lost { .. });
                let next = next.filter(|_| sent).map(|_| Err(deadline.lost()));
                let [dressed, recorded] = [Err(deadline.lost()), Err(deadline.lost())];
                return Ok(Claimed { claimed: Err(error), dressed, recorded, next });
            }
            Ok(answers) => answers.into_iter(),
        };
        let mut answer = || answers.next().ok_or(deadline.lost());
        let dressed = if first { answer().and_then(|reply| reply.done(deadline.verb())) } else { Ok(()) };
        let claimed = answer().and_then(|reply| claim.done(reply, deadline).map(drop));
        let next = next.map(|(window, _)| made_by_split(answer()?, window, deadline));
        let (claimed, recorded) = match claimed {
            Ok(()) => (Ok(()), Ok(())),
            // Which of the two could not be done?
            Err(Error::Failed { .. }) => (self.claim(pane, owner, label), self.record(pane, owner, command)),
            Err(error) => (Err(error), Err(deadline.lost())),
        };
        Ok(Claimed { claimed, dressed, recorded, next })
    }

    /// And what else is to be done if it may be claimed.
    fn claiming(&self, pane: PaneId, owner: &Owner, besides: Script) -> Result<Guarded, Error> {
        let unclaimed = format!("#{{==:#{{{}}},}}", Owner::OPTION);
        let free = any(&unclaimed, &owner.condition());
        let act = Script::of(&option(pane, Owner::OPTION, owner.to_string()))
            .then(&its_process(pane))
            .then(&option(pane, "remain-on-exit", "on".to_owned()))
            .and(besides);
        Guarded::new(pane, &both(&self.epoch().condition(), &free), &act)
    }

    /// Puts another label on a pane of `owner`'s.
    ///
    /// # Errors
    /// `NotOurs`.
    pub fn label(&mut self, pane: PaneId, owner: &Owner, label: &Label) -> Result<(), Error> {
        self.guarded(Deadline::of("label a pane"), pane, owner, &label.script(pane)).map(drop)
    }

    /// Takes our marks off a pane of `owner`'s that somebody has started anew: it ends with its process again, and its
    /// border says nothing of us. On any other pane nothing is done.
    pub(crate) fn let_go(&mut self, pane: PaneId, owner: &Owner, deadline: Deadline) -> Result<(), Error> {
        let theirs = both(&owner.mark(), &format!("#{{!=:{},1}}", owner.condition()));
        let condition = both(&self.epoch().condition(), &theirs);
        let marks =
            [Owner::PROCESS, "remain-on-exit", "@teamd_name", "@teamd_color", "@teamd_state", "@teamd_task"];
        let first = Script::of(&without(pane, Owner::OPTION));
        let script = marks.into_iter().fold(first, |script, mark| script.then(&without(pane, mark)));
        let script = only_if(&pane.to_string(), &condition, &script)?;
        self.ask(&script, deadline)?.done(deadline.verb())
    }
}

/// Writes down the process that is in the pane; a format that tmux fills in itself.
fn its_process(pane: PaneId) -> TmuxCommand<'static> {
    let command = SetOption::new().pane().format().target_pane(pane.to_string());
    command.option(Owner::PROCESS).value("#{pane_pid}").build()
}

fn without(pane: PaneId, mark: &'static str) -> TmuxCommand<'static> {
    SetOption::new().pane().unset().target_pane(pane.to_string()).option(mark).build()
}
