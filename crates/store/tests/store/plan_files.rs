//! Plan files: each plan has its own file below the root, and no name leads to another file.

use crate::test_root::TestRoot;

#[test]
fn each_plan_has_its_own_file_below_the_root() {
    let env = TestRoot::new();
    let names: Vec<String> = (0..20).map(|n| env.team.write_plan(&format!("plan {n}")).unwrap()).collect();
    for (n, name) in names.iter().enumerate() {
        assert_eq!(env.team.read_plan(name).unwrap(), Some(format!("plan {n}")));
        assert_eq!(name.trim_end_matches(".md").split('-').count(), 3, "{name}");
        assert!(env.team.plan_path(name).starts_with(env.root.path().join("plans")));
    }
    assert_eq!(env.team.read_plan("../teams/orchard/config.json").unwrap(), None);
    assert_eq!(env.team.read_plan("no-such-plan.md").unwrap(), None);
}
