//! Response times that changed where a schedule decides the throughput, in words.

use super::wording::{Wording, place};
use super::{cause, change};
use crate::prose::amount::AmountChange;
use crate::prose::numbers::figure;
use analysis::explain::Finding;
use analysis::explain::statement::{ChangedTime, ResponseChange};

pub(super) fn wording(response: &ResponseChange, about: &Finding) -> Wording {
    let ResponseChange { times, is_noisy, speed } = response;
    let leading = &times[0];

    let throughput =
        if *is_noisy { ", throughput too noisy to say" } else { " at the same throughput" };
    let title = format!(
        "{}: {} {}{} in {}{throughput}: {}",
        about.target,
        if is_mean(leading) { "response time" } else { "p99 response time" },
        if speed.cases.len() == 1 { "" } else { "up to " },
        change_of(leading).duration_text(),
        place(about),
        cause::headline(speed)
    );

    let mut sentences = vec![times_text(response)];
    sentences.extend(change::reasons(speed));
    Wording { title, sentences }
}

/// States the changed times: `With b.c, the mean response time per transaction in pay is 2.40x as long
/// as with a.c (2.1x to 2.8x over 5 repeats): 12 ms instead of 5 ms; p99 is 40 ms instead of 11 ms.`
fn times_text(response: &ResponseChange) -> String {
    let case = &response.speed.cases[0];
    let leading = &response.times[0];
    let change = change_of(leading);

    let over = change.range_over(case.repeat_count);
    let mut text = format!(
        "With {}, the {} per {} in {} is {} {} with {}{over}: {}",
        case.target,
        if is_mean(leading) { "mean response time" } else { "p99 response time" },
        case.operation,
        case.place,
        change.duration_text(),
        change.than(),
        case.base,
        instead(leading)
    );
    if let Some(other) = response.times.get(1) {
        text += &format!("; p99 is {}", instead(other));
    }
    text + "."
}

fn is_mean(time: &ChangedTime) -> bool {
    time.metric == "response_mean"
}

/// Returns `12 ms instead of 5 ms`.
fn instead(time: &ChangedTime) -> String {
    let ms = |us: f64| figure(us / 1e3);
    format!("{} ms instead of {} ms", ms(time.us.value), ms(time.us.base))
}

fn change_of(time: &ChangedTime) -> AmountChange {
    AmountChange::new(time.ratio, time.interval)
}
