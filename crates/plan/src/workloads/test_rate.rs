//! Reads the rate of tests: operations per second and client, or a share of the highest rate.

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, Field, Section, ValueKind};
use crate::reading::expected_rate::ExpectedRateKind;
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::Optional;
use crate::spec::{ExpectedRate, ShareOfMax, TestRate};
use crate::text::diagnostic::Place;
use crate::text::tree::Node;
use crate::text::wording::{code, quoted};

/// The highest rates that the plan gives.
const MAX: &str = "max";
/// The highest rates that Assay measured, in the plan that a run records.
const MEASURED_MAX: &str = "measured-max";

const RATE: Optional<RateKind> = Optional(RateKind, "(as fast as possible)");
const PER_CLIENT: Quantity<f64> = Quantity::rate();
/// The shares that a plan may ask for, in percent. Above 100, the engine cannot keep up.
const PERCENT_MIN: f64 = 0.1;
const PERCENT_MAX: f64 = 1_000.0;

/// A rate as plans write it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GivenRate {
    PerClient(f64),
    PercentOfMax(f64),
}

/// `100`, `"20k/s"` or `"70% of max"`
struct RateKind;

impl ValueKind for RateKind {
    type Value = GivenRate;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<GivenRate> {
        let Some((number, of_what)) = node.text().and_then(|text| text.split_once('%')) else {
            return PER_CLIENT.read(cx, name, node).map(GivenRate::PerClient);
        };

        let percent: Option<f64> = number.trim().parse().ok();
        let is_of_max = of_what.split_whitespace().eq(["of", "max"]);
        let Some(percent) = percent.filter(|_| is_of_max) else {
            let shown = code(node.text().unwrap_or_default());
            let message = format!("{} is not a share of the highest rate: {shown}", code(name));
            cx.error("plan::bad-number", node.place, message)
                .label("expected a number, `%` and `of max`")
                .help("for example `\"70% of max\"`");
            return None;
        };

        if !(PERCENT_MIN..=PERCENT_MAX).contains(&percent) {
            let message = format!("{} is out of range: {percent}%", code(name));
            cx.error("plan::out-of-range", node.place, message)
                .label(format!("allowed: {PERCENT_MIN}% to {PERCENT_MAX}%"));
            return None;
        }
        Some(GivenRate::PercentOfMax(percent))
    }

    fn show(&self, value: &GivenRate) -> String {
        match value {
            GivenRate::PerClient(rate) => PER_CLIENT.show(rate),
            GivenRate::PercentOfMax(percent) => quoted(&format!("{percent}% of max")),
        }
    }

    fn schema(&self) -> Json {
        let share = json!({ "type": "string", "pattern": "^ *[0-9.]+ *% *of +max *$" });
        json!({ "anyOf": [PER_CLIENT.schema(), share] })
    }
}

/// The keys about rates in the workload's table, from which steps inherit.
pub(super) struct RateKeys {
    rate: Field<Option<GivenRate>>,
    max: Option<ExpectedRate>,
    measured_max: Option<ExpectedRate>,
}

impl RateKeys {
    /// Takes the keys of a table.
    pub(super) fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let max_place = section.place_of(MAX);
        let keys = Self {
            rate: cx.field(section, "rate", &RATE, None),
            max: cx.given(section, MAX, &ExpectedRateKind),
            measured_max: cx.given(section, MEASURED_MAX, &ExpectedRateKind),
        };
        // Steps of a table without a rate may have shares of their own.
        if keys.rate.value.is_some() {
            refuse_max_without_share(cx, section, max_place, &keys.rate);
        }
        keys
    }

    /// Takes the rate of a step from its table.
    pub(super) fn of_step(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
    ) -> Field<Option<TestRate>> {
        let max_place = section.place_of(MAX);
        let rate = cx.inherited(section, "rate", &RATE, &self.rate, self.rate.value);
        let max = cx.given(section, MAX, &ExpectedRateKind);
        let measured_max = cx.given(section, MEASURED_MAX, &ExpectedRateKind);
        refuse_max_without_share(cx, section, max_place, &rate);

        let value = rate.value.map(|given| match given {
            GivenRate::PerClient(rate) => TestRate::PerClient(rate),
            GivenRate::PercentOfMax(percent) => TestRate::OfMax(Box::new(ShareOfMax {
                percent,
                given: max.or_else(|| self.max.clone()).unwrap_or_default(),
                measured: measured_max.or_else(|| self.measured_max.clone()).unwrap_or_default(),
            })),
        });
        Field { value, place: rate.place, trusted: rate.trusted }
    }
}

/// Reports a highest rate of which no rate is a share.
fn refuse_max_without_share(
    cx: &mut Context<'_>,
    section: &Section,
    max_place: Place,
    rate: &Field<Option<GivenRate>>,
) {
    let is_share = matches!(rate.value, Some(GivenRate::PercentOfMax(_)));
    if is_share || max_place == Place::Nowhere || !rate.trusted {
        return;
    }

    let max = code(&section.name_of(MAX));
    cx.error(
        "plan::conflict",
        max_place,
        format!("{max} has no effect: the rate is not a share of it"),
    )
    .label("the highest rate of all clients together")
    .help("remove it, or set `rate` to a share such as `\"70% of max\"`");
}

#[cfg(test)]
mod tests {
    use words::CellKind;

    use crate::{Plan, StepRate};

    /// Returns a plan of `tpcb` with these keys of its workload, or the messages about it.
    fn plan(keys: &str) -> Result<Plan, String> {
        let text = format!(
            "clients = [1, 4]\n[build.pg]\npostgres = \"15\"\n[workload.transactions]\nuse = \"tpcb\"\n{keys}\n"
        );
        match crate::parse("plan.toml", &text, &[]) {
            Ok((plan, _)) => Ok(plan),
            Err(errors) => Err(crate::render(&errors, "plan.toml", &text, &[], false)),
        }
    }

    fn rates(plan: &Plan) -> [Option<f64>; 2] {
        let StepRate::Given(rate) = plan.variants[0].workload.step_rate("tpcb") else {
            panic!("`tpcb` has no rate");
        };
        [1, 4].map(|clients| rate.per_client(clients))
    }

    fn unlimited_cells(plan: &Plan) -> Vec<u32> {
        let mut cells = plan.cells();
        cells.retain(|cell| cell.kind == CellKind::Unlimited);
        cells.iter().map(|cell| cell.clients).collect()
    }

    #[test]
    fn clients_divide_the_share_of_a_highest_rate_as_soon_as_it_is_known() {
        let open = plan("rate = \"70% of max\"").unwrap();
        assert_eq!((rates(&open), unlimited_cells(&open)), ([None, None], vec![1, 4]));
        assert_eq!(open.cells()[0].kind, CellKind::Unlimited, "they come first");

        // Cells of a plan with what was measured are those of the run.
        let measured = "rate = \"70% of max\"\nstep.tpcb.measured-max = { 1 = 1000, 4 = 5432.118 }";
        let measured = plan(measured).unwrap();
        assert_eq!(rates(&measured), [Some(700.0), Some(3802.0 / 4.0)]);
        assert_eq!(unlimited_cells(&measured), [1, 4]);

        let given = plan("rate = \"50% of max\"\nmax = { 4 = \"8k\" }").unwrap();
        assert_eq!((rates(&given), unlimited_cells(&given)), ([None, Some(1000.0)], vec![1]));
        let for_all = plan("rate = \"120% of max\"\nmax = 1000").unwrap();
        assert_eq!(
            (rates(&for_all), unlimited_cells(&for_all)),
            ([Some(1200.0), Some(300.0)], vec![])
        );
        let fixed = plan("rate = 25").unwrap();
        assert_eq!((rates(&fixed), unlimited_cells(&fixed)), ([Some(25.0); 2], vec![]));
    }

    #[test]
    fn variants_that_differ_only_in_their_shares_have_one_highest_rate() {
        let variants = |second: &str| {
            let keys = format!(
                "rate = \"40% of max\"\n[workload.transactions.variant.a]\n[workload.transactions.variant.b]\n{second}"
            );
            let cells = plan(&keys).unwrap().cells();
            cells.iter().filter(|cell| cell.kind == CellKind::Unlimited).count()
        };
        assert_eq!(variants("rate = \"80% of max\""), 2, "one for each number of clients");
        assert_eq!(variants("form = \"procedure\""), 4);
        assert_eq!(variants("rate = 100"), 2);
    }

    #[test]
    fn a_wrong_share_is_refused_with_what_to_write() {
        for (keys, said) in [
            ("rate = \"70% of the max\"", "is not a share of the highest rate: `70% of the max`"),
            ("rate = \"70%\"", "for example `\"70% of max\"`"),
            ("rate = \"0% of max\"", "is out of range: 0%"),
            ("rate = 100\nmax = 1000", "`workload.transactions.max` has no effect"),
            ("step.tpcb.max = 1000", "`workload.transactions.step.tpcb.max` has no effect"),
            ("rate = \"9% of max\"\nmax = { 4 = \"8q\" }", "has an unknown unit"),
            ("rate = \"9% of max\"\nthink = \"1s\"", "cannot have a rate"),
        ] {
            let refused = plan(keys).unwrap_err();
            assert!(refused.contains(said), "{keys}: {refused}");
        }
    }
}
