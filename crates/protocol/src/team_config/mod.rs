//! A team's config.json: the team's settings and its current members.

mod config;
mod edit;
mod member;

pub use config::{ConfigError, TeamConfig, parse_member};
pub use edit::{
    with_member, with_member_fields, with_members, with_team_fields, without_first_matches, without_member,
    without_members,
};
pub use member::{Member, TeammateEntry};
