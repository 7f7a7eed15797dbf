//! A team as a few files that can be carried to another machine: at the paths that they have below a root, so that anybody
//! can unpack them there.
//!
//! What is on its way, and locks, stay behind. Of the config the members are packed, and nobody is made of them: they run
//! where they run.

use crate::directory::Directory;
use crate::error::Error;
use crate::file::{FILE_LIMIT, INBOX_LIMIT, PATIENCE, Shape, Temporary, place, read_as, read_raw, settle};
use crate::tasks::MARK;
use crate::team::{CONFIG, INBOXES, Team};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::message;
use protocol::name::{AgentName, TeamName};
use protocol::task::Task;
use protocol::team_config::TeamConfig;
use serde_json::Value;
use std::collections::BTreeMap;

/// What of a config belongs to the place where the team was made.
const LOCAL: [&str; 6] = ["name", "createdAt", "leadAgentId", "leadSessionId", "members", "hiddenPaneIds"];

impl Team {
    /// Hands over each file with its path: `teams/NAME/config.json`, `teams/NAME/inboxes/…`, `tasks/NAME/…`. Each is
    /// whole; a message that is sent meanwhile may be among them or not.
    ///
    /// # Errors
    /// `Corrupt` for one that does not parse, `Io`; what `take` says.
    pub fn pack<E: From<Error>>(&self, mut take: impl FnMut(&str, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let name = self.name();
        let config = self.whole(self.dir(), CONFIG, Shape::Object)?;
        take(&format!("teams/{name}/{CONFIG}"), &config.ok_or_else(|| self.gone())?)?;
        if let Some(inboxes) = self.inboxes()? {
            for file in inboxes.names()?.iter().filter(|file| inbox_of(file).is_some()) {
                if let Some(bytes) = self.whole(inboxes, file, Shape::Array)? {
                    take(&format!("teams/{name}/{INBOXES}/{file}"), &bytes)?;
                }
            }
        }
        if let Some(tasks) = self.task_dir()? {
            for file in tasks.names()?.iter().filter(|file| task_of(file).is_some()) {
                if let Some(bytes) = self.whole(tasks, file, Shape::Object)? {
                    take(&format!("tasks/{name}/{file}"), &bytes)?;
                }
            }
            if let Some(mark) = read_raw(tasks, MARK, FILE_LIMIT)? {
                take(&format!("tasks/{name}/{MARK}"), &mark.into_bytes())?;
            }
        }
        Ok(())
    }

    fn whole(&self, dir: &Directory, file: &str, shape: Shape) -> Result<Option<Vec<u8>>, Error> {
        let read = read_as(self.way(), dir, file, shape.limit(), PATIENCE, |text| shape.check(text))?;
        Ok(read.map(|(snapshot, ())| snapshot.into_bytes()))
    }

    /// Puts what was packed into a team that was just made: inboxes and tasks, and of its config what every place has.
    ///
    /// # Errors
    /// `Exists` for an inbox or a task that is there; `Io`.
    pub fn unpack(&self, parcel: &Parcel) -> Result<(), Error> {
        let durability = self.way().durability;
        let put = |dir, file: &str, text: &str| {
            let made = Temporary::write(dir, file, text.as_bytes(), 0o600, durability)?.create(file)?;
            made.then_some(()).ok_or_else(|| Error::Exists { what: format!("file {file}") })
        };
        let (inboxes, tasks) = (self.inboxes_made()?, self.task_dir_made()?);
        parcel.inboxes.iter().try_for_each(|(file, text)| put(inboxes, file, text))?;
        parcel.tasks.iter().try_for_each(|(id, text)| put(tasks, &format!("{id}.json"), text))?;
        if let Some(mark) = parcel.mark {
            place(tasks, MARK, mark.to_string().as_bytes(), durability)?;
        }
        settle(inboxes, durability)?;
        settle(tasks, durability)?;
        let fields: Vec<(&str, Value)> = parcel.fields.iter().map(|(key, it)| (&**key, it.clone())).collect();
        if fields.is_empty() { Ok(()) } else { self.set(&fields) }
    }
}

/// What was packed, checked file by file, and nobody's yet.
#[derive(Debug, Default)]
pub struct Parcel {
    team: Option<TeamName>,
    has_config: bool,
    /// Who was on the team beside its lead.
    members: Vec<AgentName>,
    /// The config's fields that any place has.
    fields: BTreeMap<String, Value>,
    inboxes: BTreeMap<String, String>,
    tasks: BTreeMap<TaskId, String>,
    mark: Option<u32>,
}

impl Parcel {
    /// Takes a file in; its path is one of those that [`Team::pack`] gives.
    ///
    /// # Errors
    /// `Data` for any other path, for a file that is there twice or is none of its kind, and for one that is too large.
    pub fn add(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), ErrorReport> {
        let parts: Vec<&str> = path.split('/').collect();
        let name = parts.get(1).and_then(|name| TeamName::parse(name).ok());
        let name = name
            .filter(|name| !name.is_claude_session() && ["teams", "tasks"].contains(&parts[0]))
            .ok_or_else(|| refused(path, "no file of a team"))?;
        if self.team.get_or_insert_with(|| name.clone()) != &name {
            return Err(refused(path, "of another team than the first"));
        }
        let limit = if parts[2..].first() == Some(&INBOXES) { INBOX_LIMIT } else { FILE_LIMIT };
        if bytes.len() as u64 > limit {
            return Err(refused(path, "too large"));
        }
        let text = String::from_utf8(bytes).map_err(|_| refused(path, "not UTF-8"))?;
        match parts[..] {
            ["teams", _, CONFIG] => self.config(path, &text),
            ["teams", _, INBOXES, file] => self.inbox(path, file, text),
            ["tasks", _, ".lock"] => Ok(()),
            ["tasks", _, MARK] => self.mark(path, &text),
            ["tasks", _, file] => self.task(path, file, text),
            _ => Err(refused(path, "no file of a team")),
        }
    }

    /// The name that the team had.
    ///
    /// # Errors
    /// `Data` where its config is missing.
    pub fn name(&self) -> Result<TeamName, ErrorReport> {
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

    fn config(&mut self, path: &str, text: &str) -> Result<(), ErrorReport> {
        let config = TeamConfig::parse(text).map_err(|why| refused(path, &why.to_string()))?;
        let names = config.members.into_iter().map(|member| member.name);
        self.members = names.filter(|name| !name.is_lead()).collect();
        let whole: serde_json::Map<String, Value> =
            serde_json::from_str(text).map_err(|why| refused(path, &why.to_string()))?;
        self.fields = whole.into_iter().filter(|(key, _)| !LOCAL.contains(&key.as_str())).collect();
        once(path, std::mem::replace(&mut self.has_config, true))
    }

    fn inbox(&mut self, path: &str, file: &str, text: String) -> Result<(), ErrorReport> {
        inbox_of(file).ok_or_else(|| refused(path, "not the name of an inbox"))?;
        message::parse_inbox(&text).map_err(|why| refused(path, &why.to_string()))?;
        once(path, self.inboxes.insert(file.to_owned(), text).is_some())
    }

    fn task(&mut self, path: &str, file: &str, text: String) -> Result<(), ErrorReport> {
        let id = task_of(file).ok_or_else(|| refused(path, "not the name of a task"))?;
        let task = Task::parse(&text).map_err(|why| refused(path, &why.to_string()))?;
        if task.id != id {
            return Err(refused(path, &format!("it holds task {}", task.id)));
        }
        // The tasks of members that are not here, which tell how each does.
        if task.is_internal() {
            return Ok(());
        }
        once(path, self.tasks.insert(id, text).is_some())
    }

    fn mark(&mut self, path: &str, text: &str) -> Result<(), ErrorReport> {
        let mark = text.trim().parse().map_err(|_| refused(path, "not a number"))?;
        once(path, self.mark.replace(mark).is_some())
    }
}

fn once(path: &str, was_there: bool) -> Result<(), ErrorReport> {
    if was_there { Err(refused(path, "there twice")) } else { Ok(()) }
}

fn refused(path: &str, why: &str) -> ErrorReport {
    let shown: String = path.chars().take(200).collect();
    ErrorReport::new(ErrorKind::InvalidData, format!("cannot import {shown}: {why}"))
}

/// Whose inbox has this file.
fn inbox_of(file: &str) -> Option<AgentName> {
    let stem = file.strip_suffix(".json")?;
    let name = AgentName::new_unchecked(stem);
    (name.file_stem() == stem).then_some(name)
}

/// The task of this file.
fn task_of(file: &str) -> Option<TaskId> {
    let id = TaskId::parse(file.strip_suffix(".json")?).ok()?;
    (format!("{id}.json") == file).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_TEXT: &str =
        r#"{"name":"t","leadSessionId":"s","note":1,"members":[{"name":"team-lead"},{"name":"ann"}]}"#;
    const TASK_TEXT: &str = r#"{"id":"3","subject":"x","status":"pending","blocks":[],"blockedBy":[]}"#;

    fn said(files: &[(&str, &str)]) -> String {
        let mut parcel = Parcel::default();
        let added = files.iter().try_for_each(|(path, text)| parcel.add(path, text.as_bytes().to_vec()));
        match added.and_then(|()| parcel.name()) {
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
        let mut parcel = Parcel::default();
        parcel.add("teams/t/config.json", CONFIG_TEXT.into()).unwrap();
        assert_eq!(parcel.fields.keys().collect::<Vec<_>>(), ["note"]);
        assert_eq!(parcel.members(), [AgentName::new_unchecked("ann")]);
    }
}
