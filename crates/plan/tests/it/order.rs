//! The order of the cells of a plan.

fn cells(order: &str) -> Vec<String> {
    cells_of(order, "")
}

fn cells_of(order: &str, variants: &str) -> Vec<String> {
    cells_by(1, order, variants)
}

fn cells_by(seed: u64, order: &str, variants: &str) -> Vec<String> {
    let text = format!(
        "seed = {seed}\nclients = [1, 4]\nrepeats = 2\norder = \"{order}\"\n[workload.insert]\n{variants}[build.a]\nnull = \"bundled\"\n\
         [build.b]\nnull = \"bundled\"\n"
    );
    let (plan, _) = plan::parse("p.toml", &text, &[]).unwrap();
    let cells = plan.cells();
    let show = |cell: &plan::Cell| {
        let build = &plan.builds[plan.targets[cell.target].build].name;
        let variant = plan.variants[cell.variant].name.as_deref().unwrap_or("");
        format!("{build}{variant}{}r{}", cell.clients, cell.repeat)
    };
    cells.iter().map(show).collect()
}

#[test]
fn interleaved_cells_take_turns_and_the_second_round_mirrors_the_first() {
    assert_eq!(cells("interleaved").join(" "), "a1r1 b1r1 a4r1 b4r1 b1r2 a1r2 b4r2 a4r2");
}

#[test]
fn the_seed_decides_the_first_target_and_each_is_first_once_in_two_rounds() {
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let cells = cells_by(seed, "interleaved", "");
        assert_eq!(cells, cells_by(seed, "interleaved", ""));
        let places: Vec<&str> = cells.iter().map(|cell| &cell[1..]).collect();
        assert_eq!(places.join(" "), "1r1 1r1 4r1 4r1 1r2 1r2 4r2 4r2");
        for pair in 0..2 {
            let first = |round: usize| cells[4 * round + 2 * pair].split_at(1).0;
            assert_ne!(first(0), first(1), "{cells:?}");
            firsts.insert((pair, first(0).to_owned()));
        }
    }
    assert_eq!(firsts.len(), 4);
}

#[test]
fn grouped_cells_stay_together() {
    assert_eq!(cells("grouped").join(" "), "a1r1 a1r2 a4r1 a4r2 b1r1 b1r2 b4r1 b4r2");
}

#[test]
fn variants_are_an_outer_loop_around_clients_and_take_turns_as_targets_do() {
    let variants = "[workload.insert.variant.x]\n[workload.insert.variant.y]\n";
    assert_eq!(
        cells_of("interleaved", variants).join(" "),
        "ax1r1 bx1r1 ax4r1 bx4r1 by1r1 ay1r1 ay4r1 by4r1 ay1r2 by1r2 by4r2 ay4r2 bx1r2 ax1r2 bx4r2 ax4r2"
    );
    assert_eq!(
        cells_of("grouped", variants).join(" "),
        "ax1r1 ax1r2 ax4r1 ax4r2 ay1r1 ay1r2 ay4r1 ay4r2 bx1r1 bx1r2 bx4r1 bx4r2 by1r1 by1r2 by4r1 by4r2"
    );
}

#[test]
fn a_target_against_itself_takes_turns_only_with_its_twin() {
    let text = "repeats = 2\nbase = \"b.default\"\nagainst-itself = \"a.default\"\n[workload.insert]\n\
                [build.b]\nnull = \"bundled\"\n[build.a]\nnull = \"bundled\"\n";
    let (plan, warnings) = plan::parse("p.toml", text, &[]).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(plan.against_itself && plan.base == 0);
    let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["a.default", "a.default-again"]);
    let parts = |index: usize| (plan.targets[index].build, plan.targets[index].config);
    assert_eq!(parts(0), parts(1));
    let cells = plan.cells();
    let cells: Vec<_> = cells.iter().map(|cell| (cell.target, cell.repeat)).collect();
    assert_eq!(cells, [(0, 1), (1, 1), (1, 2), (0, 2)]);
}
