//! Adds up the usage (tokens and cost) that a program reports in JSON lines. The `UsagePaths` of a
//! profile say where in a line the usage is.

use crate::json_lookup::values_at;
use protocol::token_and_cost_usage::{Usage, UsagePaths, UsageReading, to_microdollars};
use serde_json::Value;
use std::collections::VecDeque;

/// Maximum number of model calls whose usage a later line can still replace. A program may report
/// the usage of one model call in several lines with the same id; only the last line counts. The
/// lines of several model calls may alternate.
const MAX_OPEN_PARTS: usize = 64;

/// The usage that one output or one file reports.
#[derive(Debug)]
pub(crate) struct UsageCounter {
    paths: UsagePaths,
    total: Option<Usage>,
    /// The usage of each request that a later line may still replace, with the id of the request.
    open_parts: VecDeque<(Value, Usage)>,
}

impl UsageCounter {
    pub(crate) fn new(paths: UsagePaths) -> UsageCounter {
        UsageCounter { paths, total: None, open_parts: VecDeque::new() }
    }

    /// Adds a line. Most lines contain no usage.
    pub(crate) fn add_line(&mut self, line: &Value) {
        let (tokens, cost) = self.read_line(line);
        if tokens.is_none() && cost.is_none() {
            return;
        }
        let Some(id_path) = &self.paths.part_id else {
            // One line may report only the tokens and another line only the cost.
            let previous_total = self.total.unwrap_or_default();
            self.total = Some(Usage {
                tokens: tokens.unwrap_or(previous_total.tokens),
                microdollars: cost.unwrap_or(previous_total.microdollars),
            });
            return;
        };
        let part = Usage { tokens: tokens.unwrap_or_default(), microdollars: cost.unwrap_or_default() };
        let id = values_at(line, id_path).first().copied().cloned();
        match self.open_parts.iter_mut().find(|(open, _)| Some(open) == id.as_ref()) {
            Some((_, known)) => *known = part,
            None => self.add_part(id, part),
        }
    }

    fn add_part(&mut self, id: Option<Value>, part: Usage) {
        let closed_part = match id {
            None => Some(part),
            Some(id) => {
                self.open_parts.push_back((id, part));
                if self.open_parts.len() > MAX_OPEN_PARTS {
                    self.open_parts.pop_front().map(|(_, part)| part)
                } else {
                    None
                }
            }
        };
        let total = self.total.unwrap_or_default();
        self.total = Some(closed_part.map_or(total, |part| total.saturating_add(part)));
    }

    /// The total usage. `None` if no line has reported usage.
    pub(crate) fn total(&self) -> Option<Usage> {
        Some(self.open_parts.iter().fold(self.total?, |sum, (_, part)| sum.saturating_add(*part)))
    }

    pub(crate) fn reading(&self) -> Option<UsageReading> {
        Some(UsageReading { usage: self.total()?, scope: self.paths.scope })
    }

    /// The tokens and the microdollars in a line. Each is `None` if the line does not report it.
    fn read_line(&self, line: &Value) -> (Option<u64>, Option<u64>) {
        let counts =
            self.paths.tokens.iter().flat_map(|path| values_at(line, path)).filter_map(Value::as_u64);
        let costs = self.paths.cost.iter().flat_map(|path| values_at(line, path)).filter_map(Value::as_f64);
        (counts.reduce(u64::saturating_add), costs.filter_map(to_microdollars).reduce(u64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counter(part_id: Option<&str>) -> UsageCounter {
        UsageCounter::new(UsagePaths {
            tokens: ["usage.in", "usage.out"].map(str::to_owned).to_vec(),
            cost: Some("cost".to_owned()),
            part_id: part_id.map(str::to_owned),
            ..UsagePaths::default()
        })
    }

    fn total(counter: &mut UsageCounter, lines: &[Value]) -> Option<(u64, u64)> {
        lines.iter().for_each(|line| counter.add_line(line));
        counter.total().map(|usage| (usage.tokens, usage.microdollars))
    }

    #[test]
    fn last_line_has_the_total_unless_each_line_has_a_part() {
        let lines = [
            json!({"usage": {"in": 3, "out": 1}, "id": "a"}),
            json!({"usage": {"in": 3, "out": 2}, "id": "a"}),
            json!({"usage": {"in": 5}, "cost": 0.25, "id": "b"}),
            json!({"usage": {"in": 3, "out": 4}, "id": "a"}),
            json!({"usage": {"in": 1}}),
            json!({"type": "end"}),
        ];
        assert_eq!(total(&mut counter(None), &lines), Some((1, 250_000)));
        assert_eq!(total(&mut counter(Some("id")), &lines), Some((3 + 4 + 5 + 1, 250_000)));
    }

    #[test]
    fn early_parts_stay_counted() {
        let lines: Vec<Value> = (0..1000).map(|id| json!({"usage": {"in": 2}, "id": id})).collect();
        let mut counter = counter(Some("id"));
        assert_eq!(total(&mut counter, &lines), Some((2000, 0)));
        assert!(counter.open_parts.len() <= MAX_OPEN_PARTS);
    }

    #[test]
    fn values_that_are_no_counts_are_ignored() {
        let lines = [
            json!({"usage": {"in": "3", "out": -1}, "cost": "1"}),
            json!({"usage": 7, "cost": -0.5}),
            json!([{"usage": {"in": 3}}]),
            json!(null),
        ];
        assert_eq!(total(&mut counter(None), &lines), None);
        let largest = json!({"usage": {"in": u64::MAX, "out": u64::MAX}});
        assert_eq!(total(&mut counter(None), &[largest]), Some((u64::MAX, 0)));
    }

    #[test]
    fn star_matches_every_key() {
        let paths = UsagePaths { tokens: vec!["models.*.in".to_owned()], ..UsagePaths::default() };
        let mut counter = UsageCounter::new(paths);
        assert_eq!(
            total(&mut counter, &[json!({"models": {"a.1": {"in": 3}, "b": {"in": 4}, "c": 7}})]),
            Some((7, 0))
        );
    }
}
