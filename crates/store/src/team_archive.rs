//! A team as a few files that can be carried to another machine: at the paths that they have below a root, so that anybody
//! can unpack them there.
//!
//! What is on its way, and locks, stay behind. Of the config the members are packed, and nobody is made of them: they run
//! where they run.

use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::{
    FILE_LIMIT, HALF_WRITTEN_TIMEOUT, INBOX_LIMIT, JsonShape, TempFile, read_and_parse, read_raw, sync_dir,
    write_file,
};
use crate::layout::{CONFIG_FILE, HIGH_WATER_MARK_FILE, INBOXES_DIR, owner_of_inbox_file, task_of_file};
use crate::team::Team;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::message;
use protocol::name::{AgentName, TeamName};
use protocol::task::Task;
use protocol::team_config::TeamConfig;
use serde_json::Value;
use std::collections::BTreeMap;

/// What of a config belongs to the place where the team was made.
const LOCAL_CONFIG_FIELDS: [&str; 6] =
    ["name", "createdAt", "leadAgentId", "leadSessionId", "members", "hiddenPaneIds"];

impl Team {
    /// Hands over each file with its path: `teams/NAME/config.json`, `teams/NAME/inboxes/…`, `tasks/NAME/…`. Each is
    /// whole; a message that is sent meanwhile may be among them or not.
    ///
    /// # Errors
    /// `Corrupt` for one that does not parse, `Io`; what `take` says.
    pub fn export<E: From<Error>>(
        &self,
        mut take: impl FnMut(&str, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = self.name();
        let config = self.read_valid(self.dir(), CONFIG_FILE, JsonShape::Object)?;
        take(&format!("teams/{name}/{CONFIG_FILE}"), &config.ok_or_else(|| self.no_such_team())?)?;
        if let Some(inboxes) = self.inboxes_dir()? {
            for file in inboxes.file_names()?.iter().filter(|file| owner_of_inbox_file(file).is_some()) {
                if let Some(bytes) = self.read_valid(inboxes, file, JsonShape::Array)? {
                    take(&format!("teams/{name}/{INBOXES_DIR}/{file}"), &bytes)?;
                }
            }
        }
        if let Some(tasks) = self.tasks_dir()? {
            for file in tasks.file_names()?.iter().filter(|file| task_of_file(file).is_some()) {
                if let Some(bytes) = self.read_valid(tasks, file, JsonShape::Object)? {
                    take(&format!("tasks/{name}/{file}"), &bytes)?;
                }
            }
            if let Some(mark) = read_raw(tasks, HIGH_WATER_MARK_FILE, FILE_LIMIT)? {
                take(&format!("tasks/{name}/{HIGH_WATER_MARK_FILE}"), &mark.into_bytes())?;
            }
        }
        Ok(())
    }

    fn read_valid(&self, dir: &DirHandle, file: &str, shape: JsonShape) -> Result<Option<Vec<u8>>, Error> {
        let read = read_and_parse(self.io(), dir, file, shape.limit(), HALF_WRITTEN_TIMEOUT, |text| {
            shape.check(text)
        })?;
        Ok(read.map(|(snapshot, ())| snapshot.into_bytes()))
    }

    /// Puts what was packed into a team that was just made: inboxes and tasks, and of its config what every place has.
    ///
    /// # Errors
    /// `Exists` for an inbox or a task that is there; `Io`.
    pub fn import(&self, parcel: &TeamArchive) -> Result<(), Error> {
        let durability = self.io().durability;
        let put = |dir, file: &str, text: &str| {
            let made = TempFile::write(dir, file, text.as_bytes(), 0o600, durability)?.create(file)?;
            made.then_some(()).ok_or_else(|| Error::AlreadyExists { what: format!("file {file}") })
        };
        let (inboxes, tasks) = (self.create_inboxes_dir()?, self.create_tasks_dir()?);
        parcel.inboxes.iter().try_for_each(|(file, text)| put(inboxes, file, text))?;
        parcel.tasks.iter().try_for_each(|(id, text)| put(tasks, &format!("{id}.json"), text))?;
        if let Some(mark) = parcel.high_water_mark {
            write_file(tasks, HIGH_WATER_MARK_FILE, mark.to_string().as_bytes(), durability)?;
        }
        sync_dir(inboxes, durability)?;
        sync_dir(tasks, durability)?;
        let fields: Vec<(&str, Value)> =
            parcel.config_fields.iter().map(|(key, it)| (&**key, it.clone())).collect();
        if fields.is_empty() { Ok(()) } else { self.set_fields(&fields) }
    }
}

/// What was packed, checked file by file, and nobody's yet.
#[derive(Debug, Default)]
pub struct TeamArchive {
    team: Option<TeamName>,
    has_config: bool,
    /// Who was on the team beside its lead.
    members: Vec<AgentName>,
    /// The config's fields that any place has.
    config_fields: BTreeMap<String, Value>,
    inboxes: BTreeMap<String, String>,
    tasks: BTreeMap<TaskId, String>,
    high_water_mark: Option<u32>,
}

impl TeamArchive {
    /// Takes a file in; its path is one of those that `Team::pack` gives.
    ///
    /// # Errors
    /// `Data` for any other path, for a file that is there twice or is none of its kind, and for one that is too large.
    pub fn add_file(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), ErrorReport> {
        let parts: Vec<&str> = path.split('/').collect();
        let name = parts.get(1).and_then(|name| TeamName::parse(name).ok());
        let name = name
            .filter(|name| !name.is_claude_session() && ["teams", "tasks"].contains(&parts[0]))
            .ok_or_else(|| import_error(path, "no file of a team"))?;
        if self.team.get_or_insert_with(|| name.clone()) != &name {
            return Err(import_error(path, "of another team than the first"));
        }
        let limit = if parts[2..].first() == Some(&INBOXES_DIR) { INBOX_LIMIT } else { FILE_LIMIT };
        if bytes.len() as u64 > limit {
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

    /// The name that the team had.
    ///
    /// # Errors
    /// `Data` where its config is missing.
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

    /// Who was on the team beside its lead.
    pub fn members(&self) -> &[AgentName] {
        &self.members
    }

    /// How many inboxes, and how many tasks.
    pub fn counts(&self) -> (usize, usize) {
        (self.inboxes.len(), self.tasks.len())
    }

    fn add_config(&mut self, path: &str, text: &str) -> Result<(), ErrorReport> {
        let config = TeamConfig::parse(text).map_err(|why| import_error(path, &why.to_string()))?;
        let names = config.members.into_iter().map(|member| member.name);
        self.members = names.filter(|name| !name.is_lead()).collect();
        let whole: serde_json::Map<String, Value> =
            serde_json::from_str(text).map_err(|why| import_error(path, &why.to_string()))?;
        self.config_fields =
            whole.into_iter().filter(|(key, _)| !LOCAL_CONFIG_FIELDS.contains(&key.as_str())).collect();
        check_first(path, std::mem::replace(&mut self.has_config, true))
    }

    fn add_inbox(&mut self, path: &str, file: &str, text: String) -> Result<(), ErrorReport> {
        owner_of_inbox_file(file).ok_or_else(|| import_error(path, "not the name of an inbox"))?;
        message::parse_inbox(&text).map_err(|why| import_error(path, &why.to_string()))?;
        check_first(path, self.inboxes.insert(file.to_owned(), text).is_some())
    }

    fn add_task(&mut self, path: &str, file: &str, text: String) -> Result<(), ErrorReport> {
        let id = task_of_file(file).ok_or_else(|| import_error(path, "not the name of a task"))?;
        let task = Task::parse(&text).map_err(|why| import_error(path, &why.to_string()))?;
        if task.id != id {
            return Err(import_error(path, &format!("it holds task {}", task.id)));
        }
        // The tasks of members that are not here, which tell how each does.
        if task.is_internal() {
            return Ok(());
        }
        check_first(path, self.tasks.insert(id, text).is_some())
    }

    fn add_high_water_mark(&mut self, path: &str, text: &str) -> Result<(), ErrorReport> {
        let mark = text.trim().parse().map_err(|_| import_error(path, "not a number"))?;
        check_first(path, self.high_water_mark.replace(mark).is_some())
    }
}

fn check_first(path: &str, was_there: bool) -> Result<(), ErrorReport> {
    if was_there { Err(import_error(path, "there twice")) } else { Ok(()) }
}

fn import_error(path: &str, why: &str) -> ErrorReport {
    let shown: String = path.chars().take(200).collect();
    ErrorReport::new(ErrorKind::InvalidData, format!("cannot import {shown}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_TEXT: &str =
        r#"{"name":"t","leadSessionId":"s","note":1,"members":[{"name":"team-lead"},{"name":"ann"}]}"#;
    const TASK_TEXT: &str = r#"{"id":"3","subject":"x","status":"pending","blocks":[],"blockedBy":[]}"#;

    fn said(files: &[(&str, &str)]) -> String {
        let mut parcel = TeamArchive::default();
        let added = files.iter().try_for_each(|(path, text)| parcel.add_file(path, text.as_bytes().to_vec()));
        match added.and_then(|()| parcel.team_name()) {
            Ok(name) => format!("{name} {:?}", parcel.counts()),
            Err(fault) => fault.message,
        }
    }

    #[test]
    fn nothing_but_the_whole_files_of_one_team_is_taken() {
        let config = ("teams/t/config.json", CONFIG_TEXT);
        let task = ("tasks/t/3.json", TASK_TEXT);
        assert_eq!(said(&[config, ("teams/t/inboxes/ann.json", "[]"), task]), "t (1, 1)");
        for (path, text, why) in [
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
            ("teams/t/config.json", CONFIG_TEXT, "there twice"),
        ] {
            let said = said(&[config, (path, text)]);
            assert!(said.starts_with(&format!("cannot import {path}: ")) && said.contains(why), "{said}");
        }
        assert!(said(&[task]).contains("no config.json"));
    }

    #[test]
    fn of_a_config_goes_along_what_any_place_has() {
        let mut parcel = TeamArchive::default();
        parcel.add_file("teams/t/config.json", CONFIG_TEXT.into()).unwrap();
        assert_eq!(parcel.config_fields.keys().collect::<Vec<_>>(), ["note"]);
        assert_eq!(parcel.members(), [AgentName::new_unchecked("ann")]);
    }
}
