//! Words for rates that are shares of highest rates.

use record::MaxRate;
use words::counted;

use crate::model::number::rate_text;

/// Returns a rate with what it follows from: `The rate of tpcb with 4 clients is 3,802/s: 70% of
/// 5,432/s, the highest rate of pg.base, the slowest target.`
pub fn max_rate_sentence(rate: &MaxRate) -> String {
    let source = match (rate.slowest(), rate.achieved.len()) {
        (None, _) => "which the plan gives".to_owned(),
        (Some(only), 1) => format!("the highest rate of {}", only.target),
        (Some(slowest), _) => {
            let variant = slowest.variant.as_ref();
            let with_variant = variant.map_or(String::new(), |variant| format!(" with {variant}"));
            format!("the highest rate of {}{with_variant}, the slowest target", slowest.target)
        }
    };

    format!(
        "The rate of {} with {} is {}/s: {}% of {}/s, {source}.",
        rate.place(),
        counted(rate.clients as usize, "client"),
        rate_text(rate.rate_per_s),
        rate.percent,
        rate_text(rate.max_per_s)
    )
}

#[cfg(test)]
mod tests {
    use record::AchievedRate;

    use super::*;

    #[test]
    fn a_rate_is_told_with_the_slowest_target_that_decides_it() {
        let achieved =
            |target: &str, per_s| AchievedRate { target: target.into(), variant: None, per_s };
        let mut rate = MaxRate {
            step: "tpcb".into(),
            variant: None,
            clients: 4,
            max_per_s: 5_432.0,
            percent: 70.0,
            rate_per_s: 3_802.0,
            achieved: vec![achieved("pg.next", 6_000.0), achieved("pg.base", 5_432.0)],
        };
        assert_eq!(
            max_rate_sentence(&rate),
            "The rate of tpcb with 4 clients is 3,802/s: 70% of 5,432/s, the highest rate of pg.base, the slowest target."
        );
        rate.achieved.clear();
        rate.variant = Some("large".into());
        rate.clients = 1;
        assert_eq!(
            max_rate_sentence(&rate),
            "The rate of tpcb of large with 1 client is 3,802/s: 70% of 5,432/s, which the plan gives."
        );
    }
}
