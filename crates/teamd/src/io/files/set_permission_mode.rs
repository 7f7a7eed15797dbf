//! Sets the permission mode of a member, in config.json or with a message.

use crate::core::jobs::file_jobs::{ModeChange, ModeRoute};
use crate::io::files::files_thread::FilesThread;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{ModeSetRequest, Payload};
use protocol::team_and_member_names::MemberName;
use store::Error;

impl FilesThread {
    /// Sets the permission mode of a member. `route` says how: by writing the mode to config.json,
    /// or by sending a message to the member.
    pub(super) fn set_mode(
        &mut self,
        ModeChange { team, name, mode }: &ModeChange,
        route: ModeRoute,
        at: u64,
    ) -> Result<(), Error> {
        let team = self.open_team(team)?;
        if route == ModeRoute::InConfig {
            return team.set_member_fields(name, &[("mode", serde_json::json!(mode))]);
        }
        let lead = MemberName::lead();
        let request = ModeSetRequest { mode: mode.to_string(), from: lead.to_string() };
        team.inbox(name).append(&Message::new(&lead, Payload::ModeSetRequest(request).to_text(), at))
    }
}
