//! Export and import of a team, to move it to another machine. An exported file keeps its path
//! relative to the root, such as `teams/NAME/config.json`. So any archive program can also unpack
//! the export below a root.
//!
//! Temporary files and locks are not exported. The members in the config are not imported, because
//! their agents run on the old machine.

use crate::clock::now;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{
    FILE_LIMIT, HALF_WRITTEN_TIMEOUT, INBOX_LIMIT, JsonShape, TempFile, read_and_parse, read_raw, sync_dir,
    write_file,
};
use crate::open_request_and_possible_answers::OpenRequest;
use crate::team_file_names::{
    CONFIG_FILE, HIGH_WATER_MARK_FILE, INBOXES_DIR, owner_of_inbox_file, task_of_file,
};
use crate::team_handle::Team;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::inbox_file::{self, InboxEntry};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::TeamConfig;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of a config that are not imported, because they describe the old machine.
const LOCAL_CONFIG_FIELDS: [&str; 6] =
    ["name", "createdAt", "leadAgentId", "leadSessionId", "members", "hiddenPaneIds"];

impl Team {
    /// Calls `visit` with the path and content of each file: `teams/NAME/config.json`,
    /// `teams/NAME/inboxes/…`, `tasks/NAME/…`. The content of each file is complete. A message that
    /// is sent during the export may or may not be included.
    ///
    /// # Errors
    /// `Corrupt` if a file is not valid JSON; `Io`; the errors of `visit`.
    pub fn export<E: From<Error>>(
        &self,
        mut visit: impl FnMut(&str, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = self.name();
        let config = self.read_valid(self.dir(), CONFIG_FILE, JsonShape::Object)?;
        visit(&format!("teams/{name}/{CONFIG_FILE}"), &config.ok_or_else(|| self.no_such_team())?)?;
        if let Some(inboxes) = self.inboxes_dir()? {
            for file in inboxes.file_names()?.iter().filter(|file| owner_of_inbox_file(file).is_some()) {
                if let Some(bytes) = self.read_valid(inboxes, file, JsonShape::Array)? {
                    visit(&format!("teams/{name}/{INBOXES_DIR}/{file}"), &bytes)?;
                }
            }
        }
        if let Some(tasks) = self.tasks_dir()? {
            for file in tasks.file_names()?.iter().filter(|file| task_of_file(file).is_some()) {
                if let Some(bytes) = self.read_valid(tasks, file, JsonShape::Object)? {
                    visit(&format!("tasks/{name}/{file}"), &bytes)?;
                }
            }
            if let Some(high_water_mark) = read_raw(tasks, HIGH_WATER_MARK_FILE, FILE_LIMIT)? {
                visit(&format!("tasks/{name}/{HIGH_WATER_MARK_FILE}"), &high_water_mark.into_bytes())?;
            }
        }
        Ok(())
    }

    fn read_valid(&self, dir: &DirHandle, file: &str, shape: JsonShape) -> Result<Option<Vec<u8>>, Error> {
        let result = read_and_parse(self.io(), dir, file, shape.limit(), HALF_WRITTEN_TIMEOUT, |text| {
            shape.check(text)
        })?;
        Ok(result.map(|(snapshot, ())| snapshot.into_bytes()))
    }

    /// Writes the inboxes, tasks and config fields of an archive to a team that was just created.
    ///
    /// # Errors
    /// `AlreadyExists` if an inbox or a task exists; `Io`.
    pub fn import(&self, archive: &TeamArchive) -> Result<(), Error> {
        let durability = self.io().durability;
        let create_file = |dir, file: &str, text: &str| {
            let created = TempFile::write(dir, file, text.as_bytes(), 0o600, durability)?.create(file)?;
            created.then_some(()).ok_or_else(|| Error::AlreadyExists { what: format!("file {file}") })
        };
        let (inboxes, tasks) = (self.create_inboxes_dir()?, self.create_tasks_dir()?);
        archive.inboxes.iter().try_for_each(|(file, text)| create_file(inboxes, file, text))?;
        archive.tasks.iter().try_for_each(|(id, text)| create_file(tasks, &format!("{id}.json"), text))?;
        if let Some(high_water_mark) = archive.high_water_mark {
            write_file(tasks, HIGH_WATER_MARK_FILE, high_water_mark.to_string().as_bytes(), durability)?;
        }
        sync_dir(inboxes, durability)?;
        sync_dir(tasks, durability)?;
        // All imported messages to teammates are marked read. Otherwise, a new member of the same
        // name would act on messages that were meant for the old machine.
        let owners = archive.inboxes.keys().filter_map(|file| file.strip_suffix(".json"));
        let mut members = owners.map(MemberName::new_unchecked).filter(|owner| !owner.is_lead());
        members.try_for_each(|owner| self.inbox(&owner).mark_all_read())?;
        let fields: Vec<(&str, Value)> =
            archive.config_fields.iter().map(|(key, value)| (&**key, value.clone())).collect();
        if fields.is_empty() { Ok(()) } else { self.set_fields(&fields) }
    }
}

/// The files of an exported team, checked one by one, not yet imported.
#[derive(Debug, Default)]
pub struct TeamArchive {
    team: Option<TeamName>,
    has_config: bool,
    /// The members of the exported team except its lead.
    members: Vec<MemberName>,
    /// The fields of the config to import.
    config_fields: BTreeMap<String, Value>,
    inboxes: BTreeMap<String, String>,
    tasks: BTreeMap<TaskId, String>,
    high_water_mark: Option<u32>,
    commands: Vec<(TaskId, String)>,
}

/// The largest task id that an archive may contain, in a task or as the highest id used so far.
/// Higher ids remain for tasks that are created after the import.
const MAX_IMPORTED_ID: u32 = TaskId::MAX / 2;

impl TeamArchive {
    /// The maximum size of the file `path`, in bytes.
    pub fn size_limit(path: &str) -> u64 {
        match path.split('/').nth(2) {
            Some(INBOXES_DIR) => INBOX_LIMIT,
            _ => FILE_LIMIT,
        }
    }

    /// Adds a file to the archive. `path` is relative to the root, such as
    /// `teams/NAME/config.json`.
    ///
    /// # Errors
    /// `InvalidData` if `path` is not the path of a team file or belongs to another team, if the
    /// archive already has the file, if the file is too large, or if its content is not valid for
    /// this path. `InvalidData` also if a request in the lead's inbox has no date or a date in the
    /// future: the request would count as open when a member of the same name is spawned after the
    /// import.
    pub fn add_file(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), ErrorReport> {
        let parts: Vec<&str> = path.split('/').collect();
        let name = parts.get(1).and_then(|name| TeamName::parse(name).ok());
        let name = name
            .filter(|name| !name.is_claude_session() && ["teams", "tasks"].contains(&parts[0]))
            .ok_or_else(|| import_error(path, "no file of a team"))?;
        if self.team.get_or_insert_with(|| name.clone()) != &name {
            return Err(import_error(path, "of another team than the first"));
        }
        if bytes.len() as u64 > TeamArchive::size_limit(path) {
            return Err(import_error(path, "too large"));
        }
        let text = String::from_utf8(bytes).map_err(|_| import_error(path, "not UTF-8"))?;
        match parts[..] {
            ["teams", _, CONFIG_FILE] => self.add_config(path, &text),
            ["teams", _, INBOXES_DIR, file] => self.add_inbox(path, file, text),
            ["tasks", _, ".lock"] => Ok(()),
            ["tasks", _, HIGH_WATER_MARK_FILE] => self.add_high_water_mark(path, &text),
            ["tasks", _, file] => self.add_task(path, file, text),
            _ => Err(import_error(path, "no file of a team")),
        }
    }

    /// The name of the exported team.
    ///
    /// # Errors
    /// `InvalidData` if the archive has no config file.
    pub fn team_name(&self) -> Result<TeamName, ErrorReport> {
        let name = self.team.clone().filter(|_| self.has_config);
        name.ok_or_else(|| {
            ErrorReport::new(
                ErrorKind::InvalidData,
                "cannot import that: there is no config.json of a team in it",
            )
            .with_help("pack a team with: teamctl export TEAM")
        })
    }

    /// The members of the exported team except its lead.
    pub fn members(&self) -> &[MemberName] {
        &self.members
    }

    /// The number of inboxes and the number of tasks.
    pub fn counts(&self) -> (usize, usize) {
        (self.inboxes.len(), self.tasks.len())
    }

    /// The tasks with a command, and the commands, ordered as they were added.
    pub fn commands(&self) -> &[(TaskId, String)] {
        &self.commands
    }

    fn add_config(&mut self, path: &str, text: &str) -> Result<(), ErrorReport> {
        let config = TeamConfig::parse(text).map_err(|reason| import_error(path, &reason.to_string()))?;
        let names = config.members.into_iter().map(|member| member.name);
        self.members = names.filter(|name| !name.is_lead()).collect();
        let fields: serde_json::Map<String, Value> =
            serde_json::from_str(text).map_err(|reason| import_error(path, &reason.to_string()))?;
        self.config_fields =
            fields.into_iter().filter(|(key, _)| !LOCAL_CONFIG_FIELDS.contains(&key.as_str())).collect();
        check_first(path, std::mem::replace(&mut self.has_config, true).then_some(()))
    }

    fn add_inbox(&mut self, path: &str, file: &str, text: String) -> Result<(), ErrorReport> {
        let owner =
            owner_of_inbox_file(file).ok_or_else(|| import_error(path, "not the name of an inbox"))?;
        let entries =
            inbox_file::parse_inbox(&text).map_err(|reason| import_error(path, &reason.to_string()))?;
        if owner.is_lead() {
            check_request_dates(path, entries, now())?;
        }
        check_first(path, self.inboxes.insert(file.to_owned(), text))
    }

    fn add_task(&mut self, path: &str, file: &str, text: String) -> Result<(), ErrorReport> {
        let id = task_of_file(file).ok_or_else(|| import_error(path, "not the name of a task"))?;
        let task = Task::parse(&text).map_err(|reason| import_error(path, &reason.to_string()))?;
        if task.id != id {
            return Err(import_error(path, &format!("it holds task {}", task.id)));
        }
        // Internal tasks track agents, which do not move to this machine.
        if task.is_internal() {
            return Ok(());
        }
        if id.number() > MAX_IMPORTED_ID {
            return Err(import_error(path, "its id leaves too few ids for new tasks"));
        }
        self.commands.extend(task.command().map(|command| (id, command.to_owned())));
        check_first(path, self.tasks.insert(id, text))
    }

    fn add_high_water_mark(&mut self, path: &str, text: &str) -> Result<(), ErrorReport> {
        let high_water_mark = text.trim().parse().map_err(|_| import_error(path, "not a number"))?;
        if high_water_mark > MAX_IMPORTED_ID {
            return Err(import_error(path, "it leaves too few ids for new tasks"));
        }
        check_first(path, self.high_water_mark.replace(high_water_mark))
    }
}

/// Checks the dates of the requests in the lead's inbox. `now` is the present, in milliseconds
/// since the epoch.
///
/// A request does not count as open if it was made before its member was last started. All members
/// of the imported team are started after the import. So a request with a past date never counts as
/// open, but a request with a future date could.
fn check_request_dates(path: &str, entries: Vec<InboxEntry>, now: u64) -> Result<(), ErrorReport> {
    for request in entries.into_iter().filter_map(OpenRequest::from_entry) {
        if request.asked_at == 0 || request.asked_at > now {
            let (id, sender) = (request.request.id(), &request.from);
            let reason = format!("the request {id} of {sender} is dated in the future, or has no date");
            return Err(import_error(path, &reason).with_help("compare the clocks of both machines: date -u"));
        }
    }
    Ok(())
}

/// Fails if the archive already had `previous` for this path.
fn check_first<T>(path: &str, previous: Option<T>) -> Result<(), ErrorReport> {
    previous.map_or(Ok(()), |_| Err(import_error(path, "there twice")))
}

fn import_error(path: &str, reason: &str) -> ErrorReport {
    let shown_path: String = path.chars().take(200).collect();
    ErrorReport::new(ErrorKind::InvalidData, format!("cannot import {shown_path}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_TEXT: &str =
        r#"{"name":"t","leadSessionId":"s","note":1,"members":[{"name":"team-lead"},{"name":"ann"}]}"#;
    const TASK_TEXT: &str = r#"{"id":"3","subject":"x","status":"pending","blocks":[],"blockedBy":[]}"#;

    /// The team name and the counts of an archive with these files, or the error.
    fn outcome(files: &[(&str, &str)]) -> String {
        let mut archive = TeamArchive::default();
        let result =
            files.iter().try_for_each(|(path, text)| archive.add_file(path, text.as_bytes().to_vec()));
        match result.and_then(|()| archive.team_name()) {
            Ok(name) => format!("{name} {:?}", archive.counts()),
            Err(error) => error.message,
        }
    }

    #[test]
    fn only_complete_files_of_one_team_are_accepted() {
        let config = ("teams/t/config.json", CONFIG_TEXT);
        let task = ("tasks/t/3.json", TASK_TEXT);
        assert_eq!(outcome(&[config, ("teams/t/inboxes/ann.json", "[]"), task]), "t (1, 1)");
        for (path, text, reason) in [
            ("../../x", "{}", "no file of a team"),
            ("/teams/t/config.json", CONFIG_TEXT, "no file of a team"),
            ("teams/../config.json", CONFIG_TEXT, "no file of a team"),
            ("teams/t/inboxes/../../../x.json", "[]", "no file of a team"),
            ("teams/t/inboxes/.ann.json", "[]", "not the name of an inbox"),
            ("teams/t/other.json", "[]", "no file of a team"),
            ("teams/session-12345678/config.json", CONFIG_TEXT, "no file of a team"),
            ("teams/u/inboxes/ann.json", "[]", "of another team than the first"),
            ("teams/t/inboxes/ann.json", "[", ""),
            ("tasks/t/03.json", TASK_TEXT, "not the name of a task"),
            ("tasks/t/4.json", TASK_TEXT, "it holds task 3"),
            ("tasks/t/.highwatermark", "many", "not a number"),
            ("tasks/t/.highwatermark", "4294967295", "too few ids"),
            ("tasks/t/.highwatermark", "999999999", "too few ids"),
            (
                "tasks/t/999999999.json",
                r#"{"id":"999999999","subject":"x","status":"pending","blocks":[],"blockedBy":[]}"#,
                "too few ids",
            ),
            ("teams/t/config.json", CONFIG_TEXT, "there twice"),
        ] {
            let outcome = outcome(&[config, (path, text)]);
            assert!(
                outcome.starts_with(&format!("cannot import {path}: ")) && outcome.contains(reason),
                "{outcome}"
            );
        }
        assert!(outcome(&[task]).contains("no config.json"));
    }

    #[test]
    fn request_dated_in_the_future_or_without_a_date_is_refused() {
        let inbox = |date: &str| {
            let request = serde_json::json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ann",
                "tool_name": "Bash", "input": {}});
            let message = serde_json::json!({"from": "ann", "text": request.to_string(), "timestamp": date});
            serde_json::json!([message]).to_string()
        };
        let outcome =
            |path: &str, date: &str| outcome(&[("teams/t/config.json", CONFIG_TEXT), (path, &inbox(date))]);
        let lead = "teams/t/inboxes/team-lead.json";
        assert_eq!(outcome(lead, "2026-02-13T11:00:00.000Z"), "t (1, 0)");
        for date in ["2099-01-01T00:00:00.000Z", "soon", ""] {
            assert!(outcome(lead, date).contains("perm-1 of ann is dated in the future"), "{date}");
            assert_eq!(outcome("teams/t/inboxes/ann.json", date), "t (1, 0)", "no request to the lead");
        }
    }

    #[test]
    fn commands_of_tasks_are_listed() {
        let mut archive = TeamArchive::default();
        let task = r#"{"id":"3","subject":"x","status":"pending","blocks":[],"blockedBy":[],"metadata":{"command":"make"}}"#;
        archive.add_file("tasks/t/3.json", task.into()).unwrap();
        assert_eq!(archive.commands(), [(TaskId::from_number(3).unwrap(), "make".to_owned())]);
    }

    #[test]
    fn only_fields_that_do_not_describe_the_old_machine_are_imported() {
        let mut archive = TeamArchive::default();
        archive.add_file("teams/t/config.json", CONFIG_TEXT.into()).unwrap();
        assert_eq!(archive.config_fields.keys().collect::<Vec<_>>(), ["note"]);
        assert_eq!(archive.members(), [MemberName::new_unchecked("ann")]);
    }
}
