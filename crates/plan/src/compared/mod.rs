//! Reads what a plan compares: its builds, its configs, and the targets that are made of them.

pub(crate) mod builds;
pub(crate) mod commits;
pub(crate) mod configs;
mod creation;
mod factors;
pub(crate) mod options;
pub(crate) mod targets;

use builds::DeclaredBuild;
use configs::DeclaredConfig;

use crate::reading::context::{Context, Section};
use crate::spec::{Designed, Target};
use crate::text::tree::Node;

/// What a plan compares.
pub(crate) struct Compared {
    pub(crate) builds: Vec<DeclaredBuild>,
    pub(crate) configs: Vec<DeclaredConfig>,
    pub(crate) targets: Vec<Target>,
    pub(crate) designed: Option<Designed>,
    /// Nothing of it has an error, so that a name that is not among the targets is unknown.
    pub(crate) are_known: bool,
}

impl Compared {
    /// Reads builds and configs, and the targets that the plan lists or that a design makes of
    /// factors. `base` is the value of the plan's key.
    pub(crate) fn read(
        cx: &mut Context<'_>,
        section: &mut Section,
        base: Option<&Node>,
        is_against_itself: bool,
    ) -> Self {
        let errors = cx.errors();
        let builds = builds::read(cx, section.take("build"));
        let configs = configs::read(cx, section.take("config"), &builds);
        let target = section.take("target").map(|entry| entry.node);
        let entries = factors::DesignEntries {
            design: section.take("design"),
            factors: section.take("factors"),
            base: base.cloned(),
            target: target.as_ref().map(|node| node.place),
        };
        let mut compared =
            Self { builds, configs, targets: Vec::new(), designed: None, are_known: false };

        // A name that could not be read would be reported again as unknown.
        if cx.errors() > errors {
            return compared;
        }

        if entries.are_given() {
            let made = factors::read(cx, entries, &compared.builds, &mut compared.configs);
            if let Some(made) = made {
                (compared.targets, compared.designed) = (made.targets, Some(made.designed));
            }
        } else {
            compared.targets = targets::read(cx, target, &compared.parts());
        }
        compared.are_known = cx.errors() == errors;

        // A plan against itself measures one of its targets; the others are not mistakes. Configs of
        // a design may be levels.
        if compared.are_known && !is_against_itself && compared.designed.is_none() {
            targets::report_unused(cx, &compared.parts(), &compared.targets);
        }
        compared
    }

    fn parts(&self) -> targets::TargetParts<'_> {
        targets::TargetParts { builds: &self.builds, configs: &self.configs }
    }
}
