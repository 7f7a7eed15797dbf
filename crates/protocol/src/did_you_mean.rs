//! Suggests known names that are similar to a name that was not found.

use crate::team_and_member_names::MAX_NAME_BYTES;

/// Returns up to three `candidates` that are similar to `wanted`, the most similar first.
pub fn nearest_names<S: AsRef<str>>(wanted: &str, candidates: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut ranked: Vec<(usize, String)> = candidates
        .into_iter()
        .map(|name| (edit_distance(wanted, name.as_ref()), name.as_ref().to_owned()))
        .filter(|(distance, name)| is_near(wanted, name, *distance))
        .collect();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Returns the help text "did you mean …?" for a user who typed the unknown name `wanted`. `None`
/// if no candidate is similar to `wanted`.
pub fn did_you_mean<S: AsRef<str>>(wanted: &str, candidates: impl IntoIterator<Item = S>) -> Option<String> {
    let near = nearest_names(wanted, candidates);
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// Whether two names are similar: their first three characters are the same, or few edits turn one
/// name into the other. Few means at most two, and at most half of the longer name's length.
/// `distance` is the number of edits.
fn is_near(wanted: &str, name: &str, distance: usize) -> bool {
    let same = |(a, b): &(char, char)| a.eq_ignore_ascii_case(b);
    let beginning = wanted.chars().zip(name.chars()).take_while(same).count();
    let (wanted, name) = (wanted.chars().count(), name.chars().count());
    distance <= 2 && 2 * distance <= wanted.max(name) || beginning >= 3
}

/// Number of insertions, deletions and replacements between two names, ignoring case.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().take(2 * MAX_NAME_BYTES).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.to_lowercase().chars().take(2 * MAX_NAME_BYTES).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_come_first() {
        assert_eq!(nearest_names("wroker", ["ann", "worker", "worker-2", "zed"]), ["worker"]);
        assert_eq!(nearest_names("worker-9", ["zed", "worker", "Worker-12"]), ["Worker-12", "worker"]);
        assert_eq!(nearest_names("retry", ["grace", "retries"]), ["retries"]);
        assert!(nearest_names("x", Vec::<String>::new()).is_empty());
    }

    #[test]
    fn dissimilar_names_are_not_suggested() {
        for (wanted, name) in [("zed", "ann"), ("a", "b"), ("ab", "ba"), ("", "ann"), ("survey", "report")] {
            assert!(nearest_names(wanted, [name]).is_empty(), "{wanted}: {name}");
        }
    }
}
