//! Plan files, and the requests to approve them. A plan is a Markdown file below the root; the
//! request names the file and also contains its text.

use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{FILE_LIMIT, TempFile, read_raw, sync_dir};
use crate::team_handle::Team;
use nix::errno::Errno;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{Payload, PlanApprovalRequest};
use protocol::member_task_and_request_ids::{RequestId, UniqueMillis};
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::iso8601;
use std::path::PathBuf;
use uuid::Uuid;

const PLANS_DIR: &str = "plans";
/// Makes the ids of requests unique.
static MOMENTS: UniqueMillis = UniqueMillis::new();
/// Number of random names to try before giving up.
const MAX_NAME_TRIES: usize = 100;

const ADJECTIVES: [&str; 16] = [
    "amber", "brave", "calm", "dark", "early", "fair", "green", "hidden", "keen", "light", "mild", "noble",
    "quiet", "rapid", "still", "warm",
];
const NATURE_WORDS: [&str; 16] = [
    "autumn", "birch", "cedar", "dawn", "ember", "field", "glass", "harbor", "island", "maple", "night",
    "ocean", "pebble", "river", "stone", "winter",
];
const ANIMALS: [&str; 16] = [
    "badger", "crane", "deer", "eagle", "falcon", "goose", "heron", "ibis", "jay", "kestrel", "lynx",
    "marten", "otter", "plover", "raven", "wren",
];

impl Team {
    /// Writes a plan to a new file `plans/THREE-WORDS.md` below the root. Returns the file's name.
    pub fn write_plan(&self, text: &str) -> Result<String, Error> {
        let plans = self.open_plans_dir()?;
        let durability = self.io().durability;
        for _ in 0..MAX_NAME_TRIES {
            let name = random_name();
            let file = TempFile::write(&plans, &name, text.as_bytes(), 0o600, durability)?;
            if file.create(&name)? {
                sync_dir(&plans, durability)?;
                return Ok(name);
            }
        }
        Err(Error::io("find a name for a plan in", plans.path(), Errno::EEXIST))
    }

    /// Reads the plan file `name`. `None` if the file is missing or not UTF-8, or if `name` contains a
    /// `/` or begins with a dot.
    pub fn read_plan(&self, name: &str) -> Result<Option<String>, Error> {
        if name.contains('/') || name.starts_with('.') {
            return Ok(None);
        }
        let read = read_raw(&self.open_plans_dir()?, name, FILE_LIMIT)?;
        Ok(read.and_then(|snapshot| String::from_utf8(snapshot.into_bytes()).ok()))
    }

    /// The path of the plan file `name`.
    pub fn plan_path(&self, name: &str) -> PathBuf {
        self.root_dir().path().join(PLANS_DIR).join(name)
    }

    /// Asks the lead to approve the plan in `plans/FILE`. `plan` is the text of the plan; `at_ms`
    /// is the current time in ms since the epoch. Returns the request's id.
    pub fn request_plan_approval(
        &self,
        member: &MemberName,
        file: &str,
        plan: &str,
        at_ms: u64,
    ) -> Result<RequestId, Error> {
        let request = RequestId::plan(MOMENTS.next(at_ms), member, self.name());
        self.repeat_plan_request(&request, member, file, plan, at_ms)?;
        Ok(request)
    }

    /// Asks the lead again to approve a plan that has no answer yet. The new message has the same
    /// request id as the first, so an answer to either message closes the request.
    pub fn repeat_plan_request(
        &self,
        request: &RequestId,
        member: &MemberName,
        file: &str,
        plan: &str,
        at_ms: u64,
    ) -> Result<(), Error> {
        let payload = Payload::PlanApprovalRequest(PlanApprovalRequest {
            from: member.to_string(),
            timestamp: iso8601(at_ms),
            plan_file_path: self.plan_path(file).display().to_string(),
            plan_content: plan.to_owned(),
            request_id: request.clone(),
        });
        // Claude Code also writes these requests without the sender's color.
        self.inbox(&MemberName::lead()).append(&Message::new(member, payload.to_text(), at_ms))
    }

    fn open_plans_dir(&self) -> Result<DirHandle, Error> {
        self.check_writable()?;
        self.root_dir().create_own_dir(PLANS_DIR)
    }
}

fn random_name() -> String {
    let bytes = Uuid::new_v4().into_bytes();
    let word = |words: &[&'static str; 16], byte: u8| words[usize::from(byte & 15)];
    format!(
        "{}-{}-{}.md",
        word(&ADJECTIVES, bytes[0]),
        word(&NATURE_WORDS, bytes[1]),
        word(&ANIMALS, bytes[2])
    )
}
