//! Plans as files below the root.

use crate::fixture::TestRoot;

#[test]
fn each_plan_has_a_file_of_its_own_below_the_root() {
    let ground = TestRoot::new();
    let names: Vec<String> = (0..20).map(|n| ground.team.write_plan(&format!("plan {n}")).unwrap()).collect();
    for (n, name) in names.iter().enumerate() {
        assert_eq!(ground.team.read_plan(name).unwrap(), Some(format!("plan {n}")));
        assert_eq!(name.trim_end_matches(".md").split('-').count(), 3, "{name}");
        assert!(ground.team.plan_path(name).starts_with(ground.root.path().join("plans")));
    }
    assert_eq!(ground.team.read_plan("../teams/orchard/config.json").unwrap(), None);
    assert_eq!(ground.team.read_plan("no-such-plan.md").unwrap(), None);
}
