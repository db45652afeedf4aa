//! `assay bundle`: writes a finding of a run with all that others need to repeat it.

use inquiry::bundle::{BundleRequest, README, WrittenBundle};

use crate::cli::BundleArgs;
use crate::exit::Exit;
use crate::output::{eprint_line, print};

/// Writes a bundle.
pub fn bundle(args: &BundleArgs) -> anyhow::Result<Exit> {
    let WrittenBundle { path, limits } = inquiry::bundle::bundle(&request(args))?;
    for limit in &limits {
        eprint_line!("note: {}", limit.replace('`', ""));
    }

    if runner::bundle::is_archive(&path) {
        let shown = path.display();
        eprint_line!(
            "bug report: `tar xOf {shown} --wildcards '*/{README}'` prints its text; attach {shown}"
        );
    } else {
        eprint_line!("bug report: {}", path.join(README).display());
    }

    print(&format!("{}\n", path.display()))?;
    Ok(Exit::Ok)
}

fn request(args: &BundleArgs) -> BundleRequest {
    BundleRequest {
        run: args.run.clone(),
        between: args.between.clone(),
        step: args.step.clone(),
        metric: args.metric.clone(),
        clients: args.clients,
        variant: args.variant.clone(),
        output: args.output.clone(),
    }
}
