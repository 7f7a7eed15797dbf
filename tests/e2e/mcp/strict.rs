//! What the tools must not let pass: two that take one task, and what nobody understands.

use super::{Lines, call};
use harness::House;
use serde_json::json;

#[test]
fn of_two_that_take_a_task_at_once_one_is_told_that_it_has_it() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", "sleep", "3600"]).ok();
    house.teamctl(["spawn", "bob", "--", "sleep", "3600"]).ok();
    let open = |name| Lines::of(&house, &[], &[("TEAMD_AGENT", name), ("TEAMD_TEAM", "survey")]);
    let mut both = [open("ann"), open("bob")];
    for _ in 0..20 {
        let id = both[0].call("TaskCreate", &json!({"subject": "x"})).unwrap()["task"]["id"].clone();
        let take = json!({"taskId": id, "status": "in_progress"});
        both.iter_mut().for_each(|one| one.say(&call(7, "TaskUpdate", &take)));
        let refused = both.iter_mut().map(|one| one.heard()["result"]["isError"] == true);
        assert_eq!(refused.filter(|refused| *refused).count(), 1, "task {id}");
    }
    both.into_iter().for_each(|one| assert_eq!(one.end(), 0));
    house.end();
}
