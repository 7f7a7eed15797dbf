//! A config.json that stayed damaged, or stayed away, made whole again. Old clients truncate the file, write it
//! later, and now and then end in between: then it is empty for good. The one kind of file that is rewritten although
//! it does not parse, and for teams of ours alone; what it said is set aside first.

use crate::error::Error;
use crate::file::{Change, FILE_LIMIT, OPTIMISTIC, PATIENCE, Shape, Snapshot, read, read_raw, settle};
use crate::lock::Lock;
use crate::pause::Pause;
use crate::root::Root;
use crate::team::{CONFIG, Team};
use protocol::name::TeamName;
use std::path::PathBuf;
use std::time::Duration;

/// What was wrong with a config that has been made whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// In words, without the file's name.
    pub why: String,
    /// What it said; none where that was nothing.
    pub copy: Option<PathBuf>,
}

/// What is there.
enum Found {
    Whole,
    Nothing,
    /// It does not parse, and is kept.
    Damaged(Box<Snapshot>, Damage),
}

impl Root {
    /// The team of that name, also where its directory has no config.json; none where there is no directory.
    pub fn team_without_config(&self, name: &TeamName) -> Result<Option<Team>, Error> {
        Ok(self.directory_of(name)?.map(|dir| self.team_at(name, dir)))
    }
}

impl Team {
    /// Puts `text` in the place of a config.json that has not parsed for two seconds, or that was missing for as
    /// long. None where it is whole: then nothing was changed. For the one writer of the config alone.
    ///
    /// # Errors
    /// `ReadOnly` for a team of Claude Code's own; `Corrupt` with no copy where there are copies enough already,
    /// since what can't be kept is not replaced.
    pub fn mend(&self, text: impl Fn() -> String) -> Result<Option<Damage>, Error> {
        self.writable()?;
        let (way, dir) = (self.way(), self.dir());
        for _ in 0..=OPTIMISTIC {
            let (before, damage) = match self.found()? {
                Found::Whole => return Ok(None),
                Found::Nothing => (None, Damage { why: "it was missing".to_owned(), copy: None }),
                Found::Damaged(snapshot, damage) => (Some(*snapshot), damage),
            };
            let change = Change::prepare(way, dir, CONFIG, before, &text(), Shape::Object)?;
            let lock = Lock::acquire(dir, CONFIG)?;
            if change.commit(&lock)? {
                drop(lock);
                settle(dir, way.durability)?;
                return Ok(Some(damage));
            }
        }
        Err(Error::Contended(self.config_path()))
    }

    /// After a wait, unless it is whole.
    fn found(&self) -> Result<Found, Error> {
        let (first, longest) = (Duration::from_millis(10), Duration::from_millis(300));
        let mut pause = Pause::new(PATIENCE, first, longest);
        loop {
            match read(self.way(), self.dir(), CONFIG, Shape::Object) {
                Ok(Some(_)) => return Ok(Found::Whole),
                // An editor, say, that saves by two renames.
                Ok(None) if pause.wait() => {}
                Ok(None) => return Ok(Found::Nothing),
                Err(Error::Corrupt { .. }) => return self.set_aside(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Of just the bytes that are to be replaced: it may have changed since it was read.
    fn set_aside(&self) -> Result<Found, Error> {
        let Some(snapshot) = read_raw(self.dir(), CONFIG, FILE_LIMIT)? else { return Ok(Found::Nothing) };
        let Some(why) = wrong(snapshot.bytes()) else { return Ok(Found::Whole) };
        if snapshot.bytes().is_empty() {
            return Ok(Found::Damaged(Box::new(snapshot), Damage { why, copy: None }));
        }
        let path = self.config_path();
        match self.way().aside.keep(&path, snapshot.bytes())? {
            None => Err(Error::Corrupt { path, why, copy: None }),
            copy => Ok(Found::Damaged(Box::new(snapshot), Damage { why, copy })),
        }
    }
}

/// Why these bytes are no config; none where they are one, as far as their shape goes.
fn wrong(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some("it was empty".to_owned());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Shape::Object.check(text).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}
