//! What differs between two versions of a team's config.

use protocol::annex_link::MemberEntry;
use protocol::team_and_member_names::MemberName;
use protocol::team_config::{Member, TeamConfig};
use std::collections::HashSet;
use std::sync::OnceLock;

/// How one list of members differs from an earlier list. Each difference counts as a removal, a
/// change of a member at its place, or an addition at the end. For example, if the list `a, b`
/// becomes `b, a`, the member `a` counts as removed and added.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MemberDifference {
    /// Members of the earlier config, in its order.
    pub removed: Vec<Member>,
    /// Members before and after their change, in the order of both configs.
    pub changed: Vec<(Member, Member)>,
    /// Members of the later config that follow all others, in its order.
    pub added: Vec<Member>,
    /// The entries of `added`. Empty until a caller needs them.
    added_entries: OnceLock<Vec<MemberEntry>>,
}

impl MemberDifference {
    /// The entries of the added members, in their order. All callers share the texts.
    pub fn added_entries(&self) -> &[MemberEntry] {
        self.added_entries.get_or_init(|| self.added.iter().map(MemberEntry::from).collect())
    }
}

/// Compares the members of two configs. `None` if one of the configs has two members of the same
/// name.
pub(crate) fn compare_members(earlier: &TeamConfig, later: &TeamConfig) -> Option<MemberDifference> {
    let has_unique_names = |config: &TeamConfig| {
        let names: HashSet<&MemberName> = config.members.iter().map(|member| &member.name).collect();
        names.len() == config.members.len()
    };
    if !has_unique_names(earlier) || !has_unique_names(later) {
        return None;
    }
    let mut difference = MemberDifference::default();
    let mut rest = later.members.iter().peekable();
    for before in &earlier.members {
        match rest.next_if(|after| after.name == before.name) {
            Some(after) if !after.is_identical(before) => {
                difference.changed.push((before.clone(), after.clone()));
            }
            Some(_) => {}
            None => difference.removed.push(before.clone()),
        }
    }
    difference.added.extend(rest.cloned());
    Some(difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(members: &[&str]) -> TeamConfig {
        let member = |text: &&str| {
            let (name, model) = text.split_once('=').unwrap_or((text, ""));
            format!(r#"{{"name":"{name}","model":"{model}"}}"#)
        };
        let members: Vec<String> = members.iter().map(member).collect();
        let text = format!(r#"{{"name":"t","members":[{}]}}"#, members.join(","));
        TeamConfig::parse(&text).unwrap()
    }

    /// Names of removed, changed and added members.
    fn difference(earlier: &[&str], later: &[&str]) -> Option<[Vec<String>; 3]> {
        let difference = compare_members(&config(earlier), &config(later))?;
        let names = |members: &[Member]| members.iter().map(|member| member.name.to_string()).collect();
        let changed: Vec<Member> = difference.changed.iter().map(|(_, after)| after.clone()).collect();
        Some([names(&difference.removed), names(&changed), names(&difference.added)])
    }

    #[test]
    fn differences_name_the_members_that_differ() {
        let names = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        type Names = &'static [&'static str];
        let cases: [(Names, Names, [Names; 3]); 6] = [
            (&["a", "b"], &["a", "b"], [&[], &[], &[]]),
            (&["a"], &["a", "b", "c"], [&[], &[], &["b", "c"]]),
            (&["a", "b", "c"], &["a", "c"], [&["b"], &[], &[]]),
            (&["a", "b=1", "c"], &["a", "B=2", "c"], [&[], &["B"], &[]]),
            (&["a", "b"], &["b", "a"], [&["a"], &[], &["a"]]),
            (&["a", "c"], &["a", "b", "c"], [&["c"], &[], &["b", "c"]]),
        ];
        for (earlier, later, expected) in cases {
            assert_eq!(difference(earlier, later), Some(expected.map(names)), "{earlier:?} {later:?}");
        }
        assert_eq!(difference(&["a", "A"], &["a"]), None);
        assert_eq!(difference(&["a"], &["a", "A"]), None);
    }
}
