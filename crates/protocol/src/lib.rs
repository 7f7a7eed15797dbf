//! Types of the team files and of the daemon's control socket.
//!
//! The crate does no I/O, reads no clock and has no async code. A caller passes the current time in
//! as milliseconds since the Unix epoch. docs/protocol.md describes each file and which program may
//! write it. docs/schema has the same types as JSON Schemas.
//!
//! **Reading** is tolerant. Missing optional keys get defaults and unknown keys are ignored. Each
//! inbox entry is checked separately, so an invalid entry does not hide the others. Policies are an
//! exception: an unknown key in a [`policy::Policy`] or a [`policy::PolicyRule`] is an error. If it
//! was ignored, a rule could allow more than its author intended.
//!
//! ```
//! use protocol::team_config::TeamConfig;
//! use protocol::team_and_member_names::MemberName;
//!
//! let text = r#"{"name": "survey", "members": [{"name": "ann", "cwd": "/src", "later": true}]}"#;
//! let team = TeamConfig::parse(text)?;
//! assert_eq!(team.member(&MemberName::new_unchecked("Ann")).unwrap().cwd, "/src");
//! # Ok::<(), protocol::team_config::ConfigError>(())
//! ```
//!
//! **Writing** edits the text that was read. Every part of the text that the edit does not name
//! keeps its bytes. Section 9 of docs/protocol.md describes how the new text replaces the file:
//! under the lock and in one step.
//!
//! ```
//! use protocol::inbox_file::{Message, parse_inbox, with_marked_read, with_message};
//! use protocol::team_and_member_names::MemberName;
//!
//! let inbox = r#"[{"from": "bob", "text": "hi", "timestamp": "2026-02-13T10:05:44.590Z", "msgV": 1}]"#;
//! let ann = MemberName::parse("ann").unwrap();
//! let inbox = with_message(inbox, &Message::new(&ann, "done".into(), 1_770_977_144_590))?;
//! let inbox = with_marked_read(&inbox, &[0])?;
//! let unread: Vec<String> =
//!     parse_inbox(&inbox)?.iter().filter_map(|entry| Some(entry.unread()?.text.clone())).collect();
//! assert_eq!(unread, ["done"]);
//! assert!(inbox.contains("\"msgV\": 1"), "what we do not know stays");
//! # Ok::<(), protocol::format_preserving_json::JsonError>(())
//! ```
//!
//! **A message can carry a payload**: a JSON object in the message's `text`. A text that is no
//! payload is plain text, never an error.
//!
//! ```
//! use protocol::inbox_message_payload::{Payload, ShutdownApproved};
//!
//! let text = r#"{"type":"shutdown_request","requestId":"shutdown-1770977144590@ann","from":"team-lead"}"#;
//! let Some(Payload::ShutdownRequest(request)) = Payload::parse(text) else { panic!("{text}") };
//! let answer = Payload::ShutdownApproved(ShutdownApproved {
//!     request_id: request.request_id,
//!     from: "ann".into(),
//!     timestamp: protocol::timestamp::iso8601(1_770_977_150_000),
//!     pane_id: None,
//!     backend_type: None,
//! });
//! assert!(answer.to_text().starts_with(r#"{"type":"shutdown_approved","requestId":"shutdown-"#));
//! assert_eq!(Payload::parse("{not JSON}"), None);
//! ```
//!
//! **A task** is changed field by field. Whether a member can claim a task depends on its status,
//! its owner and the tasks that block it.
//!
//! ```
//! use protocol::task::{Task, with_fields};
//!
//! let text = r#"{"id": "2", "subject": "count", "status": "pending", "blockedBy": ["1"], "later": 1e3}"#;
//! let task = Task::parse(text)?;
//! assert!(task.is_available(&[&task]), "a blocker whose file is gone is over");
//! let taken = [("status", Some("in_progress".into())), ("owner", Some("ann".into()))];
//! assert_eq!(
//!     with_fields(text, &taken)?,
//!     r#"{"id": "2", "subject": "count", "status": "in_progress", "blockedBy": ["1"], "later": 1e3, "owner": "ann"}"#
//! );
//! # Ok::<(), protocol::task::TaskError>(())
//! ```

pub mod acp_driver_protocol;
pub mod agent_instructions;
pub mod allowed_callers;
pub mod annex_link;
pub mod branch_exchange;
pub mod check_program_supports_answer;
pub mod command_for_other_host;
pub mod control_socket;
pub mod daemon_lock_file;
pub mod deferred_template_variables;
pub mod delegate_mode_rules;
pub mod delivery_kind;
pub mod did_you_mean;
pub mod env_filter;
pub mod error_kind_and_report;
pub mod escape_control_chars;
pub mod event_log_line;
pub mod event_text_for_people;
pub mod events_of_annexes;
pub mod find_git_ssh_or_sudo_prompt_on_screen;
pub mod find_sibling_program;
pub mod find_usage_limit;
pub mod format_preserving_json;
pub mod host_report;
pub mod hosts_file_entry;
pub mod inbox_file;
pub mod inbox_message_payload;
#[cfg(feature = "schema")]
pub mod json_schema;
pub mod length_limits_of_texts;
pub mod mask_secrets_in_text;
pub mod match_dialog_on_screen;
pub mod member_color;
pub mod member_request;
pub mod member_task_and_request_ids;
pub mod parse_duration;
pub mod parse_limit_end;
pub mod permission_mode;
pub mod plan_mode_prompts;
pub mod policy;
pub mod record_check;
pub mod redact_variables;
pub mod roster_file_for_clients;
pub mod shell_quote;
mod shorten_event_texts;
pub mod single_line;
pub mod spawn_mark_in_output_log;
pub mod split_shell_command;
pub mod state_and_runtime_directories;
pub mod state_file_names;
pub mod task;
pub mod team_and_member_names;
pub mod team_config;
pub mod team_home;
pub mod team_record_line;
pub mod teamctl_ask_setup_and_record;
pub mod timestamp;
pub mod token_and_cost_usage;
pub mod worker_or_program_that_runs_turns;
