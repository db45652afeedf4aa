//! The section of functions: flame graphs of profiled steps, and the functions whose cost changed.

use std::collections::BTreeMap;

use analysis::{
    compare::{Compared, ComparedProfile, MergedProfile, ProfileTotals, merged_profiles},
    distinct,
    figures::{Figures, ProfiledStep},
};
use maud::{Markup, PreEscaped, html as markup};

use crate::model::comparison::ComparedGroup;
use crate::model::matrix::Keys;
use crate::model::names::Names;
use crate::model::number::listed;
use crate::model::number::percent;
use crate::model::table::Table;
use crate::model::text::clean;
use crate::printers::page::flame::{ProfilePair, ProfileSide, Trees};
use crate::printers::page::table::table;
use crate::printers::page::{marked, permalink};
use crate::tables::compared::functions::{facts, operation, tables as function_tables};

/// The number of places that a reason for a missing profile lists.
const PLACES_SHOWN: usize = 8;

/// A profile with what is shown beside its graph.
struct ShownProfile<'a> {
    profile: &'a MergedProfile<'a>,
    totals: &'a ProfileTotals,
    /// The profile of the same step of the base.
    base: Option<ProfileSide<'a>>,
    /// The cell as it is shown.
    label: String,
    /// The functions that changed.
    table: Option<Table>,
}

impl ShownProfile<'_> {
    fn pair(&self) -> ProfilePair<'_> {
        let target = ProfileSide { profile: self.profile, totals: self.totals };
        ProfilePair { target, base: self.base }
    }
}

/// Returns the section; empty without profiled steps.
pub(super) fn section(
    names: &Names<'_>,
    figures: &Figures,
    groups: &[ComparedGroup<'_>],
) -> Markup {
    if figures.profiled.is_empty() {
        return markup! {};
    }

    let mut merged = merged_profiles(figures);
    merged.retain(|profile| {
        figures.profiled.iter().any(|step| step.row.reported && step.row.step == profile.step)
    });

    let compared: Vec<&Compared> = groups.iter().map(|group| group.comparison.compared).collect();
    let profiles: Vec<ComparedProfile> =
        compared.iter().flat_map(|compared| compared.profiles.clone()).collect();
    let tables = function_tables(figures, &profiles);
    let tables = profiles.iter().zip(tables).collect();
    let shown = shown_profiles(names, &compared, &merged, tables);
    let first = first(&profiles, &shown);
    let pairs: Vec<ProfilePair<'_>> = shown.iter().map(ShownProfile::pair).collect();
    let trees = Trees::of(&pairs);

    markup! {
        section id="functions" {
            h2 { "Functions" (permalink("functions")) }
            @if !shown.is_empty() {
                (how_to_read(trees.share_min))
                (controls(&shown))
                @for (number, (shown, tree)) in shown.iter().zip(&trees.trees).enumerate() {
                    @let profile = shown.profile;
                    div.profile.chosen[number == first] data-target=(shown.label) data-step=(clean(&profile.step)) {
                        (graph(shown, tree, operation(figures, &profile.cell, &profile.step)))
                        @if let Some(changed) = &shown.table { (table(names, changed)) }
                    }
                }
                script.frames type="application/json" { (PreEscaped(&trees.names)) }
            }
            (missing(&figures.profiled, &merged))
        }
    }
}

/// Returns the profiles that have figures, each with its base and its one of the tables of changes.
fn shown_profiles<'a>(
    names: &Names<'_>,
    groups: &[&Compared],
    merged: &'a [MergedProfile<'a>],
    mut tables: Vec<(&ComparedProfile, Table)>,
) -> Vec<ShownProfile<'a>> {
    let keys = Keys::among(merged.iter().map(|profile| &profile.cell));

    let shown = merged.iter().filter_map(|profile| {
        let table = tables.iter().position(|(compared, _)| is_of(compared, profile));
        // A profile whose target is in no group has no base.
        let is_in =
            |group: &&&Compared| group.profiles.iter().any(|compared| is_of(compared, profile));
        let group = groups.iter().find(is_in);
        Some(ShownProfile {
            profile,
            totals: profile.totals.as_ref()?,
            base: group.and_then(|group| base_of(profile, merged, &group.base)),
            label: clean(&names.short(&keys.label(&profile.cell, 0))),
            table: table.map(|at| tables.swap_remove(at).1),
        })
    });
    shown.collect()
}

/// Returns the profile of the base in the same step with the same load.
fn base_of<'a>(
    profile: &MergedProfile<'_>,
    merged: &'a [MergedProfile<'a>],
    base: &str,
) -> Option<ProfileSide<'a>> {
    if profile.cell.target == base {
        return None;
    }
    let cell = profile.cell.of_target(base);
    let found =
        merged.iter().find(|other| other.cell.is_repeat_of(&cell) && other.step == profile.step)?;
    Some(ProfileSide { profile: found, totals: found.totals.as_ref()? })
}

/// Returns the number of the profile that is shown first: one in which a function is named, else
/// one with a base.
fn first(compared: &[ComparedProfile], shown: &[ShownProfile<'_>]) -> usize {
    let is_named = |shown: &ShownProfile<'_>| {
        let mut of_profile = compared.iter().filter(|compared| is_of(compared, shown.profile));
        of_profile.any(|compared| compared.named.is_some())
    };
    let named = shown.iter().position(is_named);
    let with_base = || shown.iter().position(|shown| shown.base.is_some());
    named.or_else(with_base).unwrap_or(0)
}

fn is_of(compared: &ComparedProfile, profile: &MergedProfile<'_>) -> bool {
    compared.cell == profile.cell && compared.step == profile.step
}

fn how_to_read(share_min: f64) -> Markup {
    markup! {
        p.note {
            "A bar is a function; the functions that it calls are below it. Its width is the CPU time per operation of the function with "
            "all that it calls. The top bar is the whole, and the next row has the threads. Callees are in alphabetical order. A frame "
            "with less than " (percent(share_min)) " of the samples counts as part of its caller."
        }
        p.note {
            "Click a frame to zoom in. Keyboard: Tab to the graph, arrow keys to move, " kbd { "Enter" } " to zoom in, " kbd { "Esc" }
            " to zoom out, " kbd { "/" } " to search."
        }
    }
}

/// Returns the controls of all graphs, and the meaning of their colors.
fn controls(shown: &[ShownProfile<'_>]) -> Markup {
    let labels =
        shown.iter().map(|shown| (shown.label.as_str(), shown.profile.cell.target.as_str()));
    let targets = distinct(labels);
    let steps = distinct(shown.iter().map(|shown| shown.profile.step.as_str()));
    let has_base = shown.iter().any(|shown| shown.base.is_some());

    markup! {
        div.pick role="toolbar" aria-label="flame graph" {
            label { "target " select.target { @for (label, name) in targets { option data-of=(clean(name)) { (label) } } } }
            label { "step " select.step { @for name in steps { option data-of=(clean(name)) { (clean(name)) } } } }
            @if has_base {
                button.change type="button" aria-pressed="true" { "color by change" }
                button.widths type="button" aria-pressed="false" { "widths of the base" }
            }
            button.reset type="button" hidden { "show all" }
            span.search role="search" {
                input type="search" aria-label="functions that match a regular expression" placeholder="search: vacuum|^_bt" autocomplete="off" spellcheck="false";
                output {}
            }
        }
        ul.key.of-change hidden {
            li { b.grew {} "costs more than in the base" }
            li { b.shrank {} "costs less" }
            li { b.same {} "the difference is below twice its standard error" }
            li { b.alone {} "only one of the targets has this function, or the function has no symbol and counts as part of its caller" }
        }
        ul.key.of-origin hidden {
            li { b.engine {} "engine and libraries" }
            li { b.kernel {} "kernel" }
            li { b.unknown {} "without a symbol" }
        }
    }
}

fn graph(shown: &ShownProfile<'_>, tree: &str, operation: &str) -> Markup {
    let ShownProfile { profile, totals, base, label, .. } = shown;
    let step = clean(&profile.step);

    markup! {
        h3 { (label) ", " (step) }
        p.note { (marked(&facts(totals))) }
        @if let Some(base) = base { p.note { "base: " (marked(&facts(base.totals))) } }
        div.flame role="tree" aria-label={ "flame graph: " (label) ", " (step) } data-operation=(operation) {}
        script type="application/json" { (PreEscaped(tree)) }
    }
}

/// Returns the steps that were to be profiled and have no graph, by the reason.
fn missing(profiled: &[ProfiledStep], merged: &[MergedProfile<'_>]) -> Markup {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for step in profiled.iter().filter(|step| step.row.reported) {
        let row = &step.row;

        let has_graph = |profile: &MergedProfile<'_>| {
            profile.totals.is_some()
                && profile.step == row.step
                && profile.cell.target == row.cell.target
                && profile.cell.load() == row.cell.load()
        };

        let reason = match &step.profile.missing {
            Some(reason) => reason.as_str(),
            // Another repeat has a profile.
            None if merged.iter().any(has_graph) => continue,
            None => "no valid repeat has samples and CPU time per operation",
        };

        let place = format!("{} in {}", row.cell.target, row.step);
        places.entry(reason).or_default().push(place);
    }

    markup! {
        @for (reason, places) in &places {
            p.note { "No profile: " (marked(reason)) " (" (clean(&listed(&distinct(places.iter()), PLACES_SHOWN, "; "))) ")" }
        }
    }
}
