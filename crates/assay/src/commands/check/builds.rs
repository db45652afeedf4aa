//! The builds of a plan, for `assay check`.

use std::fmt::Write as _;

use runner::matrix::pace::about;
use runner::prepare::commits::Unbuilt;
use runner::prepare::locate::Located;

/// Returns the builds of the plan, those that a run makes first, and the options that versions
/// lack.
pub(super) fn builds_text(located: &Located, unbuilt: &[Unbuilt]) -> String {
    let mut text = "\nbuilds:\n".to_owned();
    for build in &located.builds {
        let _ =
            write!(text, "  {}: {} {} ({})", build.name, build.engine, build.version, build.source);
        if let Some(commit) = &build.commit {
            let _ = write!(text, ", built from {}", commit.name());
        }
        text.push('\n');
    }

    // A check builds nothing, so it does not know what the configs of these do.
    for build in unbuilt {
        let (name, recipe) = (&build.name, &build.recipe);
        let time = match build.last_duration {
            Some(duration) => format!("the last build by this recipe took {}", about(duration)),
            None => "nothing was built by this recipe yet".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {name}: {}, a run builds it first: {}; {time}; its configs are tried then",
            recipe.engine,
            build.what()
        );
    }

    if !located.left_out.is_empty() {
        let _ = writeln!(text, "\noptions left out because the version lacks them:");
        for (option, targets) in &located.left_out {
            let _ = writeln!(text, "  {option}: {}", targets.join(", "));
        }
    }
    text
}
