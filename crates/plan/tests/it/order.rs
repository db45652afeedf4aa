//! The order of the cells of a plan.

fn cells(order: &str) -> Vec<String> {
    let text = format!(
        "clients = [1, 4]\nrepeats = 2\norder = \"{order}\"\n[workload.insert]\n[build.a]\nnull = \"bundled\"\n\
         [build.b]\nnull = \"bundled\"\n"
    );
    let (plan, _) = plan::parse("p.toml", &text, &[]).unwrap();
    let cells = plan.cells();
    let show = |cell: &plan::Cell| {
        let build = &plan.builds[plan.targets[cell.target].build].name;
        format!("{build}{}r{}", cell.clients, cell.repeat)
    };
    cells.iter().map(show).collect()
}

#[test]
fn interleaved_cells_take_turns() {
    assert_eq!(
        cells("interleaved").join(" "),
        "a1r1 b1r1 a4r1 b4r1 a1r2 b1r2 a4r2 b4r2"
    );
}

#[test]
fn grouped_cells_stay_together() {
    assert_eq!(
        cells("grouped").join(" "),
        "a1r1 a1r2 a4r1 a4r2 b1r1 b1r2 b4r1 b4r2"
    );
}
