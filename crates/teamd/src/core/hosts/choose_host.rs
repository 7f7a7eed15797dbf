//! Chooses the host of a new member by labels and free slots.

use protocol::control_socket::{HostCandidate, MemberHost};

/// Why no host fits a member: a reason for each candidate, such as `devbox is full (2 of 2 slots)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoHostFits(pub(crate) Vec<String>);

/// Chooses a host that has all labels in `needs` and a free slot. If there are several, it chooses
/// the one with the lowest share of slots in use. If several have the same share, it chooses the
/// first of them. A host without a limit counts as one with no slot in use. `used` returns the
/// number of members on a host.
pub(crate) fn choose_host<'c>(
    candidates: &'c [HostCandidate],
    needs: &[String],
    used: impl Fn(&MemberHost) -> u64,
) -> Result<&'c MemberHost, NoHostFits> {
    let mut best: Option<(&HostCandidate, UsedShare)> = None;
    let mut reasons = Vec::new();
    for candidate in candidates {
        let count = used(&candidate.host);
        match unmet_condition(candidate, needs, count) {
            Some(reason) => reasons.push(format!("{} {reason}", candidate.host)),
            None => {
                let share = UsedShare::new(candidate, count);
                if best.as_ref().is_none_or(|(_, lowest)| share.is_lower_than(lowest)) {
                    best = Some((candidate, share));
                }
            }
        }
    }
    best.map(|(candidate, _)| &candidate.host).ok_or(NoHostFits(reasons))
}

/// Why the member cannot run on this host. `None` if it can.
fn unmet_condition(candidate: &HostCandidate, needs: &[String], count: u64) -> Option<String> {
    let missing: Vec<&str> =
        needs.iter().filter(|need| !candidate.labels.contains(need)).map(String::as_str).collect();
    match candidate.slots {
        _ if !missing.is_empty() => Some(format!("lacks {}", missing.join(" and "))),
        Some(slots) if count >= u64::from(slots) => Some(format!("is full ({count} of {slots} slots)")),
        _ => None,
    }
}

/// A part of a host's slots: the used ones, and all.
#[derive(Debug, Clone, Copy)]
struct UsedShare {
    used: u64,
    slots: u64,
}

impl UsedShare {
    fn new(candidate: &HostCandidate, used: u64) -> UsedShare {
        match candidate.slots {
            Some(slots) => UsedShare { used, slots: u64::from(slots) },
            None => UsedShare { used: 0, slots: 1 },
        }
    }

    /// Compares without rounding.
    fn is_lower_than(&self, other: &UsedShare) -> bool {
        u128::from(self.used) * u128::from(other.slots) < u128::from(other.used) * u128::from(self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(host: &str, labels: &[&str], slots: Option<u32>) -> HostCandidate {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        HostCandidate { host: MemberHost::try_from(host.to_owned()).unwrap(), labels, slots }
    }

    fn choose(needs: &[&str], hosts: &[(HostCandidate, u64)]) -> Result<String, Vec<String>> {
        let needs: Vec<String> = needs.iter().map(|need| (*need).to_owned()).collect();
        let candidates: Vec<HostCandidate> = hosts.iter().map(|(candidate, _)| candidate.clone()).collect();
        let used = |host: &MemberHost| hosts.iter().find(|(other, _)| other.host == *host).unwrap().1;
        match choose_host(&candidates, &needs, used) {
            Ok(host) => Ok(host.to_string()),
            Err(NoHostFits(reasons)) => Err(reasons),
        }
    }

    #[test]
    fn host_with_the_lowest_share_of_used_slots_is_chosen_and_the_first_of_equal_ones() {
        let hosts = |home: u64, small: u64, big: u64| {
            [
                (candidate("home", &[], Some(2)), home),
                (candidate("small", &[], Some(2)), small),
                (candidate("big", &[], Some(6)), big),
            ]
        };
        for (used, expected) in [
            ((0, 0, 0), "home"),
            ((1, 0, 0), "small"),
            ((1, 1, 2), "big"),
            ((1, 1, 3), "home"),
            ((2, 1, 3), "small"),
            ((2, 2, 5), "big"),
        ] {
            assert_eq!(choose(&[], &hosts(used.0, used.1, used.2)).as_deref(), Ok(expected), "{used:?}");
        }
    }

    #[test]
    fn host_without_a_limit_counts_as_unused() {
        let hosts = [(candidate("a", &[], Some(9)), 1), (candidate("b", &[], None), 1000)];
        assert_eq!(choose(&[], &hosts).as_deref(), Ok("b"));
        let hosts = [(candidate("a", &[], Some(9)), 0), (candidate("b", &[], None), 0)];
        assert_eq!(choose(&[], &hosts).as_deref(), Ok("a"));
    }

    #[test]
    fn host_needs_all_labels_and_each_reason_is_named() {
        let hosts = [
            (candidate("home", &["big"], None), 0),
            (candidate("a", &["gpu"], None), 0),
            (candidate("b", &["cuda", "gpu"], Some(1)), 0),
        ];
        assert_eq!(choose(&["gpu", "cuda"], &hosts).as_deref(), Ok("b"));
        let [home, a, (b, _)] = hosts;
        let reasons = choose(&["gpu", "cuda"], &[home, a, (b, 1)]).unwrap_err();
        assert_eq!(reasons, ["home lacks gpu and cuda", "a lacks cuda", "b is full (1 of 1 slots)"]);
        assert_eq!(choose(&[], &[]), Err(Vec::new()));
    }
}
