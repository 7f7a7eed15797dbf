//! Taking a task: owner and status in one step, of several claimants one.
//!
//! Which one is next follows from all files, and of a long list a look at them takes most of the time. So whoever is told
//! of every change, the daemon, may say it: a hint, followed only as far as the files agree.

use super::announce::Members;
use super::draft::Draft;
use super::{Scope, Tasks};
use crate::directory::Directory;
use crate::error::Error;
use protocol::control::NextTaskHint;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus, next_task, resumable_task, with_metadata};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How large the directory of a list is for which it pays to ask first, bytes: a look at some 200 files.
const LONG: u64 = 4096;
/// How often it is asked again where others are faster. Of sixteen claimants the last one has its own by then.
const ASKED: usize = 16;

/// Where a hint has led to.
enum Led {
    /// To one that was the asker's already, and in progress.
    Back(Task),
    To(Task),
    /// There is nothing to take.
    Off,
    /// The files must be looked at.
    Nowhere,
}

impl Led {
    fn by(next: NextTaskHint) -> Led {
        if next == NextTaskHint::NoTask { Led::Off } else { Led::Nowhere }
    }
}

impl Tasks {
    /// Gives `owner` the task `id`, or without one its own first startable task, or the lowest available.
    ///
    /// Refused where somebody has it ([`Error::Claimed`], [`Error::AlreadyTheirs`]) or it waits
    /// ([`Error::Blocked`]); with nothing to take it is [`Error::NothingAvailable`]. An earlier failure is
    /// forgotten.
    pub fn claim(&self, id: Option<&TaskId>, owner: &AgentName) -> Result<Task, Error> {
        self.claim_by(owner, |owner| match id {
            Some(id) => self.take(*id, owner),
            None => self.take_next(&self.list_shared()?, owner),
        })
    }

    /// As [`Tasks::claim`] without an id; of a long list whoever knows it is asked first. That there is nothing is said
    /// by the files alone.
    pub fn claim_told(&self, owner: &AgentName, told: impl Fn() -> NextTaskHint) -> Result<Task, Error> {
        match self.follow(owner, told)? {
            Led::To(task) => Ok(task),
            Led::Back(_) | Led::Off | Led::Nowhere => self.claim(None, owner),
        }
    }

    /// The lowest task that `owner` has in progress and that has not failed: what an earlier life of it left,
    /// for the next one to go on with. Writes nothing. One that waits for others by now is left out.
    pub fn resume(&self, owner: &AgentName) -> Result<Option<Task>, Error> {
        Ok(resumable_task(&self.list_shared()?, owner).cloned())
    }

    /// As [`Tasks::resume`], but for those that are `settled`; else as [`Tasks::claim`] without an id. One look
    /// serves both, or whoever is `told`, and is believed that there is nothing: for those that are woken when there is.
    pub fn resume_or_claim(
        &self,
        owner: &AgentName,
        settled: impl Fn(TaskId) -> bool,
        told: impl Fn() -> NextTaskHint,
    ) -> Result<Task, Error> {
        match self.follow(owner, told)? {
            Led::Back(task) if settled(task.id) => {}
            Led::Back(task) | Led::To(task) => return Ok(task),
            Led::Off => return Err(self.nothing()),
            Led::Nowhere => {}
        }
        let all = self.list_shared()?;
        if let Some(task) = resumable_task(&all, owner).filter(|task| !settled(task.id)) {
            return Ok(task.clone());
        }
        self.next(&all, owner)?;
        self.claim_by(owner, |owner| self.take_next(&all, owner))
    }

    /// Asks, of a long list, and takes what is said, if the files say so too. Where somebody was faster that is known by
    /// whoever is asked again.
    fn follow(&self, owner: &AgentName, told: impl Fn() -> NextTaskHint) -> Result<Led, Error> {
        if self.team.task_dir()?.map_or(Ok(0), Directory::size)? <= LONG {
            return Ok(Led::Nowhere);
        }
        let mut next = told();
        if !matches!(next, NextTaskHint::Task(_)) {
            return Ok(Led::by(next));
        }
        let members = self.members()?;
        let owner = self.owner(&members, owner)?;
        for _ in 0..ASKED {
            let NextTaskHint::Task(id) = next else { break };
            if let Some(led) = self.take_told(id, &members, &owner)? {
                return Ok(led);
            }
            next = told();
        }
        Ok(Led::by(next))
    }

    /// None where the files do not say so any more.
    fn take_told(&self, id: TaskId, members: &Members, owner: &AgentName) -> Result<Option<Led>, Error> {
        match self.take(id, owner) {
            Ok(task) => {
                self.tell(members, &task, owner)?;
                Ok(Some(Led::To(task)))
            }
            Err(Error::AlreadyTheirs { .. }) => {
                Ok(resumable_task(&self.with_blockers(id)?, owner).cloned().map(Led::Back))
            }
            Err(error) if is_no_more(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has a member take one, and tells it so.
    fn claim_by(
        &self,
        owner: &AgentName,
        take: impl FnOnce(&AgentName) -> Result<Task, Error>,
    ) -> Result<Task, Error> {
        let members = self.members()?;
        let owner = self.owner(&members, owner)?;
        let task = take(&owner)?;
        self.tell(&members, &task, &owner)?;
        Ok(task)
    }

    /// Looks without a turn at the list, so that nobody waits for a look, least of all for one that finds nothing;
    /// what it chose is looked at again in the turn. Where others were faster it looks and takes in one turn.
    fn take_next(&self, all: &[Arc<Task>], owner: &AgentName) -> Result<Task, Error> {
        let id = self.next(all, owner)?;
        match self.take(id, owner) {
            Err(error) if is_no_more(&error) => self.change_of(Scope::List, |draft| {
                let id = self.next(draft.tasks(), owner)?;
                take(draft, id, owner)
            }),
            taken => taken,
        }
    }

    fn take(&self, id: TaskId, owner: &AgentName) -> Result<Task, Error> {
        self.change_of(Scope::Blocked(id), |draft| take(draft, id, owner))
    }

    fn next(&self, all: &[Arc<Task>], owner: &AgentName) -> Result<TaskId, Error> {
        next_task(all, owner).ok_or_else(|| self.nothing())
    }

    fn nothing(&self) -> Error {
        Error::NothingAvailable(self.team.name().clone())
    }
}

/// It is not as it was when it was chosen.
fn is_no_more(error: &Error) -> bool {
    matches!(
        error,
        Error::Claimed { .. }
            | Error::AlreadyTheirs { .. }
            | Error::Transition { .. }
            | Error::Blocked { .. }
            | Error::NoSuchTask { .. }
            | Error::Corrupt { .. }
            | Error::Malformed { .. }
    )
}

fn take(draft: &mut Draft, id: TaskId, owner: &AgentName) -> Result<Task, Error> {
    claimable(draft, id, owner)?;
    draft.set(id, &[("status", Some("in_progress".into())), ("owner", Some(Value::from(owner.as_str())))])?;
    forget_failure(draft, id)?;
    draft.task(id).cloned()
}

fn claimable(draft: &mut Draft, id: TaskId, owner: &AgentName) -> Result<(), Error> {
    // The file may say more than the list did when it was read; then this is drafted again.
    let task = draft.main(id)?;
    let begun = task.status == TaskStatus::InProgress;
    match &task.owner {
        Some(other) if begun && other == owner => {
            return Err(Error::AlreadyTheirs { id, owner: other.clone() });
        }
        Some(other) if begun || (other != owner && task.status == TaskStatus::Pending) => {
            return Err(Error::Claimed { id, owner: other.clone() });
        }
        _ => {}
    }
    if task.status != TaskStatus::Pending || task.is_internal() {
        return Err(Error::Transition { id, from: task.status.to_string(), to: "in_progress".to_owned() });
    }
    blocked(draft, &task)
}

/// What begins anew has not failed.
pub(super) fn forget_failure(draft: &mut Draft, id: TaskId) -> Result<(), Error> {
    if draft.task(id)?.metadata.as_ref().is_none_or(|metadata| !metadata.contains_key("failure")) {
        return Ok(());
    }
    let forget = Map::from_iter([("failure".to_owned(), Value::Null)]);
    draft.rewrite(id, |text| with_metadata(text, &forget))
}

/// Refuses a task that waits for others.
pub(super) fn blocked(draft: &Draft, task: &Task) -> Result<(), Error> {
    let blockers = task.open_blockers(draft.tasks());
    if blockers.is_empty() { Ok(()) } else { Err(Error::Blocked { id: task.id, blockers }) }
}
