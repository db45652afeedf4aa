//! The trend of a step over the runs of a plan.

use report::{Outline, StepPoint, TREND_METRICS, Trend, TrendMetric, TrendPoint};
use words::Metric;

use super::index::{Index, IndexedRun};
use super::pages::PATIENCE;
use super::query::Query;

/// The most runs of a trend: the newest.
const RUNS_MAX: usize = 500;

/// What an address asks for.
struct Wanted<'q> {
    target: &'q str,
    variant: Option<&'q str>,
    clients: u32,
    step: &'q str,
    /// The index of the metric in [`TREND_METRICS`].
    metric: usize,
}

impl<'q> Wanted<'q> {
    /// Reads an address. A metric that is unknown stands for the first one.
    fn read(query: &'q Query) -> Self {
        let name = query.text("metric");
        let metric = TREND_METRICS.iter().position(|metric| metric.name() == name);

        Self {
            target: query.text("target"),
            variant: query.given("variant"),
            clients: query.text("clients").parse().unwrap_or(0),
            step: query.text("step"),
            metric: metric.unwrap_or(0),
        }
    }

    fn is(&self, point: &StepPoint) -> bool {
        let cell = &point.cell;
        point.step == self.step
            && cell.target == self.target
            && cell.variant.as_deref() == self.variant
            && cell.clients == self.clients
    }
}

/// Returns the trend of a step over the runs with the plan of this one.
pub(super) fn trend(
    query: &Query,
    index: &Index,
    run: &IndexedRun,
    outline: &Outline,
) -> anyhow::Result<String> {
    let runs = index.runs(PATIENCE)?;
    let is_of_plan =
        |run: &&IndexedRun| run.facts().is_some_and(|facts| facts.plan == outline.plan);
    let mut of_plan: Vec<&IndexedRun> = runs.iter().filter(is_of_plan).take(RUNS_MAX).collect();

    // A step of other work has the same name and other figures.
    let all = of_plan.len();
    of_plan.retain(|run| run.facts().is_some_and(|facts| facts.work.is_same_as(&outline.work)));
    let other_work = all - of_plan.len();
    of_plan.reverse();

    let mut started = Vec::new();
    for run in &of_plan {
        started.push(run.facts().map(|facts| facts.started()).unwrap_or_default());
    }

    let wanted = Wanted::read(query);
    let (mut points, mut unit) = (Vec::new(), String::new());
    for (run, started) in of_plan.iter().zip(&started) {
        let Some(point) = point_of(run, &wanted) else {
            continue;
        };
        if let Some(spread) = point.values[wanted.metric] {
            points.push(TrendPoint { run: &run.name, started, repeats: point.repeats, spread });
            unit.clone_from(&point.unit);
        }
    }

    let metric = TREND_METRICS[wanted.metric];
    if metric != TrendMetric::Throughput {
        let known = Metric::named(metric.name()).map_or("", |known| known.unit);
        unit = known.replace("us", "\u{b5}s");
    }

    Ok(report::trend_page(&Trend {
        run: &run.name,
        plan: &outline.plan,
        target: wanted.target,
        variant: wanted.variant,
        clients: wanted.clients,
        step: wanted.step,
        metric,
        unit,
        points,
        other_work,
        unread: of_plan.iter().filter(|run| run.outcome.is_none()).count(),
    }))
}

/// Returns the result of the wanted step in a run, if that was read.
fn point_of<'r>(run: &'r IndexedRun, wanted: &Wanted<'_>) -> Option<&'r StepPoint> {
    run.results()?.points.iter().find(|point| wanted.is(point))
}
