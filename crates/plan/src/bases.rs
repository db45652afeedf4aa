//! The keys `base` and `against-itself`: the target that others are compared with, or one for each
//! engine or build.

use crate::compared::Compared;
use crate::compared::builds::DeclaredBuild;
use crate::compared::targets::{index_named, with_twin};
use crate::reading::context::{Context, Section, ValueKind, table_of};
use crate::reading::value_kinds::Line;
use crate::spec::{GroupBase, Target};
use crate::text::diagnostic::Place;
use crate::text::tree::{Node, Value};
use crate::text::wording::{choices, code, key_part, list};

/// The targets that others are compared with.
pub(crate) struct Bases {
    /// The index of the target with which all are compared, or else the first group's.
    pub(crate) base: usize,
    /// The bases of engines and builds; none if all targets have the same.
    pub(crate) groups: Vec<GroupBase>,
}

/// The keys, before the targets are known that they name.
pub(crate) struct BaseKeys {
    /// The index that the base has among all values of the plan.
    listed_at: usize,
    base: Option<Node>,
    against_itself: Option<Node>,
}

impl BaseKeys {
    /// Takes the keys, whose values are listed here once they are known.
    pub(crate) fn take(cx: &Context<'_>, section: &mut Section) -> Self {
        Self {
            listed_at: cx.resolved.len(),
            base: section.take("base").map(|entry| entry.node),
            against_itself: section.take("against-itself").map(|entry| entry.node),
        }
    }

    /// Returns the value of `base`.
    pub(crate) fn base(&self) -> Option<&Node> {
        self.base.as_ref()
    }

    /// Returns whether a target is compared with itself.
    pub(crate) fn is_against_itself(&self) -> bool {
        self.against_itself.is_some()
    }

    /// Leaves only the target that `against-itself` names, and adds its twin. Leaves none if it names
    /// no target. Without the key, all targets stay.
    pub(crate) fn pair_with_twin(&self, cx: &mut Context<'_>, compared: &mut Compared) {
        let Some(node) = &self.against_itself else {
            return;
        };

        let choices = BaseChoices::of(compared);
        compared.targets = match choices.target(cx, self.listed_at, "against-itself", node) {
            Some(index) => with_twin(cx, node.place, &compared.targets[index]),
            None => Vec::new(),
        };
        compared.designed = None;
    }

    /// Returns the bases that `base` names, and lists them. Without the key, or if a target is
    /// compared with itself, the target `first` is the base. Returns `None` if there is none.
    pub(crate) fn bases(
        self,
        cx: &mut Context<'_>,
        first: usize,
        compared: &Compared,
    ) -> Option<Bases> {
        if let Some(node) = self.base
            && self.against_itself.is_none()
        {
            return BaseChoices::of(compared).read(cx, self.listed_at, node);
        }

        let target = compared.targets.get(first)?;
        cx.resolve_at(self.listed_at, "base", Line.show(&target.name), Place::Nowhere);
        Some(Bases { base: first, groups: Vec::new() })
    }
}

/// The names that the keys may have.
struct BaseChoices<'a> {
    builds: &'a [DeclaredBuild],
    targets: &'a [Target],
    /// A design made the targets.
    are_designed: bool,
    /// A name that is not among the targets is unknown.
    are_known: bool,
}

impl<'a> BaseChoices<'a> {
    fn of(compared: &'a Compared) -> Self {
        Self {
            builds: &compared.builds,
            targets: &compared.targets,
            are_designed: compared.designed.is_some(),
            are_known: compared.are_known,
        }
    }

    /// Reads the value of `base`, and lists it at `listed_at` among all values.
    fn read(&self, cx: &mut Context<'_>, listed_at: usize, node: Node) -> Option<Bases> {
        if matches!(node.value, Value::Table(_)) {
            return self.read_groups(cx, listed_at, node);
        }

        let base = self.target(cx, listed_at, "base", &node)?;
        Some(Bases { base, groups: Vec::new() })
    }

    /// Reads a target's name, and lists it.
    fn target(
        &self,
        cx: &mut Context<'_>,
        listed_at: usize,
        key: &str,
        node: &Node,
    ) -> Option<usize> {
        let index = index_named(cx, key, node, self.targets, self.are_known)?;
        cx.resolve_at(listed_at, key, Line.show(&self.targets[index].name), node.place);
        Some(index)
    }

    /// Reads a table of bases: `{ mysql = "my80.plain", postgres = "pg17.plain" }`.
    fn read_groups(&self, cx: &mut Context<'_>, listed_at: usize, node: Node) -> Option<Bases> {
        let place = node.place;
        let table = table_of(cx, "base", node)?;
        if self.are_designed {
            cx.error("plan::conflict", place, "a design has one base")
                .label("several bases")
                .help("name the target without any change: `base = \"BUILD.CONFIG\"`");
            return None;
        }

        let errors = cx.errors();
        let mut groups: Vec<GroupBase> = Vec::new();
        for entry in table.entries {
            let key = format!("base.{}", key_part(&entry.key));
            if !self.are_known || !self.check_group(cx, &entry.key, entry.key_place) {
                continue;
            }

            let target = self.target(cx, listed_at + groups.len(), &key, &entry.node);
            let target = target
                .filter(|&target| self.check_member(cx, &entry.key, target, entry.node.place));
            groups.extend(target.map(|target| GroupBase { group: entry.key, target }));
        }

        let Some(first) = groups.first() else {
            if self.are_known && cx.errors() == errors {
                cx.error("plan::missing-key", place, "`base` names no target")
                    .label("empty")
                    .help("write `base = { ENGINE = \"BUILD.CONFIG\" }`, or remove the key");
            }
            return None;
        };
        let base = first.target;

        if cx.errors() == errors {
            self.warn_of_others(cx, place, &groups);
        }
        Some(Bases { base, groups })
    }

    /// Warns about targets without a base.
    fn warn_of_others(&self, cx: &mut Context<'_>, place: Place, groups: &[GroupBase]) {
        let has_base =
            |target: &Target| groups.iter().any(|group| self.is_of(target, &group.group));
        let others = self.targets.iter().filter(|target| !has_base(target));
        let names: Vec<&str> = others.map(|target| target.name.as_str()).collect();
        if names.is_empty() {
            return;
        }

        let message = format!("targets have no base to be compared with: {}", list(&names));
        cx.warning("plan::left-out", place, message)
            .label("none of these engines and builds is theirs")
            .help("add their engine or their build");
    }

    /// Returns whether some target is of an engine or a build; reports a name of neither.
    fn check_group(&self, cx: &mut Context<'_>, group: &str, place: Place) -> bool {
        if self.targets.iter().any(|target| self.is_of(target, group)) {
            return true;
        }

        let mut names: Vec<&str> = Vec::new();
        for target in self.targets {
            let build = &self.builds[target.build].build;
            for name in [build.engine.name(), build.name.as_str()] {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let message = format!("no target is of the engine or build {}", code(group));
        cx.error("plan::unknown-build", place, message)
            .label("neither an engine nor a build")
            .help(choices(group, "engines and builds", &names));
        false
    }

    /// Returns whether the base of a group is one of its targets; reports it otherwise.
    fn check_member(&self, cx: &mut Context<'_>, group: &str, target: usize, place: Place) -> bool {
        if self.is_of(&self.targets[target], group) {
            return true;
        }

        let of_group = self.targets.iter().filter(|target| self.is_of(target, group));
        let names: Vec<&str> = of_group.map(|target| target.name.as_str()).collect();
        let name = code(&self.targets[target].name);
        let message = format!("{name} cannot be the base of {}", code(group));
        cx.error("plan::conflict", place, message)
            .label(format!("not a target of {}", code(group)))
            .help(choices(&self.targets[target].name, "its targets", &names));
        false
    }

    fn is_of(&self, target: &Target, group: &str) -> bool {
        let build = &self.builds[target.build].build;
        build.engine.name() == group || build.name == group
    }
}
