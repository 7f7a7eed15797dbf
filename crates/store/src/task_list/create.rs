//! Creates tasks. A new id is higher than all existing and earlier ids. A file appears with its
//! whole content and never replaces another file.
//!
//! In a batch, the files of blockers are created before the files of the tasks that they block. A
//! blocker without a file counts as completed, so in another order a member could claim a blocked
//! task too early.
//!
//! Before the files of a batch are created, the highest id of the batch is stored as the high-water
//! mark. So no id is used again, even if a crash loses some of the files.

use super::cache::list_ids;
use super::high_water_mark::{raise_high_water_mark, read_high_water_mark};
use super::lock_queue_ticket::Ticket;
use super::new_task::NewTask;
use super::new_task_batch::{BatchTask, TaskBatch};
use super::rewrite::{RewriteRules, parse_fields, used_id_error};
use super::task_list_handle::{ReadScope, Tasks};
use crate::error::Error;
use crate::file_io::{FILE_LIMIT, MAX_ATTEMPTS, TempFile, UNLOCKED_ATTEMPTS, sync_dir};
use crate::mkdir_lock::Lock;
use crate::team_file_names::{LOCK_FILE, task_file_name};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};

impl Tasks {
    pub fn create(&self, new_task: NewTask) -> Result<Task, Error> {
        let mut created =
            self.create_all(vec![BatchTask { task: new_task, blocked_by_index: Vec::new() }])?;
        Ok(created.pop().expect("a batch of one task creates one"))
    }

    /// Creates several tasks while holding the list's flock. The ids ascend in the given order.
    /// Each owner is notified once.
    ///
    /// # Errors
    /// `TextTooLong`, `NoSuchMember` for an owner, `NoSuchTask` for a dependency, and `BatchCycle`:
    /// after these errors no task is created. After another error, such as a full disk, some of the
    /// tasks may exist.
    pub fn create_all(&self, mut batch_tasks: Vec<BatchTask>) -> Result<Vec<Task>, Error> {
        self.team.check_writable()?;
        let members = self.possible_owners()?;
        for task in batch_tasks.iter_mut().map(|batch_task| &mut batch_task.task) {
            task.check_text_lengths()?;
            task.owner = task.owner.take().map(|name| self.resolve_owner(&members, &name)).transpose()?;
        }
        let batch = TaskBatch::new(batch_tasks)?;
        let tasks = {
            let dir = self.team.create_tasks_dir()?;
            if batch.has_external_links() {
                self.team.task_cache().load_if_empty(self.team.io(), dir)?;
            }
            self.create_with_links(&Ticket::acquire(dir)?, &batch)?
        };
        self.notify_owners(&members, tasks.iter().zip(batch.creators()))?;
        Ok(tasks)
    }

    /// The highest id of all tasks that exist or existed. 0 if there was none. New tasks get higher
    /// ids.
    ///
    /// # Errors
    /// As [`Tasks::high_water_mark`].
    pub fn last_id(&self) -> Result<u32, Error> {
        let ids = self.team.tasks_dir()?.map(list_ids).transpose()?.unwrap_or_default();
        Ok(self.high_water_mark()?.max(ids.last().map_or(0, |id| id.number())))
    }

    /// Reserves all ids up to `last_id`, so that no new task gets one of them. Called when the
    /// team's tasks come from another host, where these ids were used.
    ///
    /// # Errors
    /// `Contended` if other programs change the high-water mark too often; errors of file access.
    pub fn reserve_ids(&self, last_id: u32) -> Result<(), Error> {
        let Some(last_id) = TaskId::from_number(last_id) else { return Ok(()) };
        let ticket = Ticket::acquire(self.team.create_tasks_dir()?)?;
        for _ in 0..MAX_ATTEMPTS {
            let lock = Lock::acquire(ticket.dir(), LOCK_FILE)?;
            let Some((_, change)) = raise_high_water_mark(self.team.io(), ticket.dir(), last_id)? else {
                return Ok(());
            };
            if change.commit(&lock)? {
                return Ok(());
            }
        }
        Err(Error::Contended(self.path()))
    }

    /// Creates the internal task that tracks a spawned agent. The task is in progress, has no
    /// owner, and is hidden from users.
    pub fn create_internal(&self, agent: &MemberName, prompt: &str) -> Result<Task, Error> {
        self.team.check_writable()?;
        let ticket = Ticket::acquire(self.team.create_tasks_dir()?)?;
        let mut tasks = self.place_files(&ticket, &[0], |first| {
            vec![Task {
                status: TaskStatus::InProgress,
                description: prompt.to_owned(),
                metadata: Some(Map::from_iter([("_internal".to_owned(), Value::Bool(true))])),
                ..NewTask::new(agent.as_str(), agent).to_task(first)
            }]
        })?;
        Ok(tasks.pop().expect("one file was placed for one task"))
    }

    /// Creates a task with these fields. Its id is the next free one.
    ///
    /// # Errors
    /// `Malformed` if the fields do not describe a task; errors of the files.
    pub fn create_from_fields(&self, fields: &Map<String, Value>) -> Result<Task, Error> {
        self.team.check_writable()?;
        let malformed = |reason| Error::Malformed { path: self.path(), reason };
        let task = parse_fields(fields).map_err(malformed)?;
        let ticket = Ticket::acquire(self.team.create_tasks_dir()?)?;
        let mut tasks = self.place_files(&ticket, &[0], |id| vec![Task { id, ..task.clone() }])?;
        Ok(tasks.pop().expect("one file was placed for one task"))
    }

    /// Creates a task with this id. Returns false if another program has created the task.
    ///
    /// # Errors
    /// `AlreadyExists` if `rules` is [`RewriteRules::Checked`] and the id was used before this
    /// call; `Malformed` if the fields do not describe a task; errors of the files.
    pub(super) fn create_with_id(
        &self,
        id: &TaskId,
        fields: &Map<String, Value>,
        rules: RewriteRules,
    ) -> Result<bool, Error> {
        self.team.check_writable()?;
        let ticket = Ticket::acquire(self.team.create_tasks_dir()?)?;
        if rules == RewriteRules::Checked && self.first_free_id(&ticket, 1)?.is_some_and(|free| free > *id) {
            return Err(used_id_error(*id));
        }
        let malformed = |reason| Error::Malformed { path: self.path().join(task_file_name(*id)), reason };
        let task = parse_fields(fields).map_err(malformed)?;
        let (name, file) = self.write_temp_file(&ticket, &Task { id: *id, ..task })?;
        let list_lock = Lock::acquire(ticket.dir(), LOCK_FILE)?;
        let is_created = list_lock.is_ours()? && file.create(&name)?;
        drop(list_lock);
        sync_dir(ticket.dir(), self.team.io().durability)?;
        Ok(is_created)
    }

    fn create_with_links(&self, ticket: &Ticket, batch: &TaskBatch) -> Result<Vec<Task>, Error> {
        if batch.has_external_links() {
            let cached_tasks = self.team.task_cache().refresh(self.team.io(), ticket.dir())?;
            batch.check_links(self.team.name(), cached_tasks.iter().map(|cached| &cached.task))?;
        }
        let mut tasks = self.place_files(ticket, batch.order(), |first_id| batch.tasks(first_id))?;
        let external_links = batch.external_links(&tasks);
        if !external_links.is_empty() {
            self.change_with_ticket(ticket, ReadScope::List, &mut |draft| {
                external_links.iter().try_for_each(|(blocker, blocked)| draft.link(*blocker, *blocked))
            })?;
            for task in &mut tasks {
                *task = self.get(&task.id)?;
            }
        }
        Ok(tasks)
    }

    /// Creates the files of new tasks. `build_tasks` gets the lowest new id and returns the tasks,
    /// with ascending ids. If another program uses one of these ids in the meantime, `build_tasks`
    /// is called again. The files are created in the order `order`, which has indexes into the
    /// vector of returned tasks.
    fn place_files(
        &self,
        ticket: &Ticket,
        order: &[usize],
        build_tasks: impl Fn(TaskId) -> Vec<Task>,
    ) -> Result<Vec<Task>, Error> {
        let (io, dir) = (self.team.io(), ticket.dir());
        for attempt in 0..MAX_ATTEMPTS {
            let early_lock =
                (attempt >= UNLOCKED_ATTEMPTS).then(|| Lock::acquire(dir, LOCK_FILE)).transpose()?;
            let Some(first_id) = self.first_free_id(ticket, order.len())? else { return Ok(Vec::new()) };
            let tasks = build_tasks(first_id);
            let files = order
                .iter()
                .map(|index| self.write_temp_file(ticket, &tasks[*index]))
                .collect::<Result<_, _>>()?;
            let lock = early_lock.map_or_else(|| Lock::acquire(dir, LOCK_FILE), Ok)?;
            if self.first_free_id(ticket, order.len())? == Some(first_id)
                && lock.is_ours()?
                && self.put_files(ticket, &lock, &tasks, files)?
            {
                drop(lock);
                sync_dir(dir, io.durability)?;
                return Ok(tasks);
            }
        }
        Err(Error::Contended(self.path()))
    }

    /// Writes the temporary file of a new task.
    fn write_temp_file<'d>(&self, ticket: &Ticket<'d>, task: &Task) -> Result<(String, TempFile<'d>), Error> {
        let (dir, name, text) = (ticket.dir(), task_file_name(task.id), task.to_text());
        if text.len() as u64 > FILE_LIMIT {
            let (size, limit) = (text.len() as u64, FILE_LIMIT);
            return Err(Error::TooLarge { path: dir.join(&name), size, limit });
        }
        let temp_file = TempFile::write(dir, &name, text.as_bytes(), 0o600, self.team.io().durability)?;
        Ok((name, temp_file))
    }

    /// Renames the temporary files to the names of the task files. Returns false if another program
    /// has created or deleted tasks meanwhile. The caller then tries again.
    fn put_files(
        &self,
        ticket: &Ticket,
        lock: &Lock,
        tasks: &[Task],
        files: Vec<(String, TempFile)>,
    ) -> Result<bool, Error> {
        if let [_, .., last_task] = tasks
            && let Some((_, change)) = raise_high_water_mark(self.team.io(), ticket.dir(), last_task.id)?
            && !change.commit(lock)?
        {
            return Ok(false);
        }
        for (index, (name, file)) in files.into_iter().enumerate() {
            match file.create(&name)? {
                true => {}
                false if index == 0 => return Ok(false),
                false => return Err(Error::Contended(ticket.dir().join(&name))),
            }
        }
        Ok(true)
    }

    /// The first of `count` unused ids in a row. `None` if `count` is 0.
    fn first_free_id(&self, ticket: &Ticket, count: usize) -> Result<Option<TaskId>, Error> {
        let Some(further) = count.checked_sub(1) else { return Ok(None) };
        let (highest_id, _) = read_high_water_mark(ticket.dir())?;
        let highest_id = highest_id.max(list_ids(ticket.dir())?.last().map_or(0, |id| id.number()));
        let no_free_id = || Error::Malformed { path: self.path(), reason: "it has no id left".to_owned() };
        let last_id =
            u32::try_from(further).ok().and_then(|further| highest_id.checked_add(1)?.checked_add(further));
        last_id.and_then(TaskId::from_number).ok_or_else(no_free_id)?;
        Ok(TaskId::from_number(highest_id + 1))
    }
}
