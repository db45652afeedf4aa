//! Reading any text ends with a plan or with errors that can be shown.

use crate::corpus::cases;

/// Reads a text and renders its diagnostics; a bug in either panics.
fn survive(text: &str, sets: &[String], is_shown: bool) {
    match plan::parse("p.toml", text, sets) {
        Ok((plan, warnings)) => {
            assert!(!plan.targets.is_empty() && plan.base < plan.targets.len());
            if is_shown {
                plan::render(&warnings, "p.toml", text, sets, false);
            }
        }
        Err(errors) => {
            assert!(errors.iter().any(|error| error.severity == plan::Severity::Error), "{text}");
            if is_shown {
                plan::render(&errors, "p.toml", text, sets, false);
            }
        }
    }
}

/// The distance in bytes between two changes of a plan, unless every byte is changed.
const DISTANCE: usize = 23;

/// Cuts off every plan at places with this distance.
fn cut_off(distance: usize) {
    for (number, case) in cases("ok").iter().chain(&cases("bad")).enumerate() {
        let ends = (number % distance..case.text.len()).step_by(distance);
        for end in ends.filter(|&end| case.text.is_char_boundary(end)) {
            survive(&case.text[..end], &case.sets, end % 7 == 0);
        }
    }
}

/// Changes one byte of every plan, at places with this distance.
fn change(distance: usize) {
    const OTHERS: [&str; 12] = ["", "\"", "[", "]", "=", "\n", ".", "'", "{", "é", "\0", "-"];
    for (number, case) in cases("ok").iter().chain(&cases("bad")).enumerate() {
        let places = case.text.char_indices().enumerate();
        for (count, (at, c)) in places.skip(number % distance).step_by(distance) {
            let mut text = case.text.clone();
            text.replace_range(at..at + c.len_utf8(), OTHERS[count % OTHERS.len()]);
            survive(&text, &case.sets, count % 11 == 0);
        }
    }
}

#[test]
fn a_plan_cut_off_at_some_places_does_not_panic() {
    cut_off(DISTANCE);
}

#[test]
#[ignore = "some places are enough most of the time"]
fn a_plan_cut_off_anywhere_does_not_panic() {
    cut_off(1);
}

#[test]
fn a_plan_with_some_bytes_changed_does_not_panic() {
    change(DISTANCE);
}

#[test]
#[ignore = "some bytes are enough most of the time"]
fn a_plan_with_any_byte_changed_does_not_panic() {
    change(1);
}

#[test]
fn a_plan_without_any_of_its_lines_does_not_panic() {
    for case in cases("ok").iter().chain(&cases("bad")) {
        let lines: Vec<&str> = case.text.lines().collect();
        for left_out in 0..lines.len() {
            let kept =
                lines.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, line)| *line);
            survive(&kept.collect::<Vec<_>>().join("\r\n"), &case.sets, true);
        }
    }
}

#[test]
fn odd_texts_do_not_panic() {
    // Deeper than recursion can go.
    let deep_key = format!("{}a = 1", "a.".repeat(50_000));
    let deep_list = format!("clients = {}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let wide = format!("clients = [{}1]", "1, ".repeat(20_000));
    for text in [
        "",
        "\n",
        "\u{feff}name = \"x\"",
        "\u{feff}",
        "\r",
        "=",
        "[[[",
        "a",
        "\"",
        "é = 'é",
        &deep_key,
        &deep_list,
        &wide,
    ] {
        survive(text, &[], true);
    }

    let deep_set = format!("{}a=1", "a.".repeat(50_000));
    for set in [
        "",
        "=",
        "a",
        ".=1",
        "a..b=1",
        "\"=1",
        "a=",
        "a=[",
        "a={",
        "\"a\"b=1",
        "é.'ü'=é",
        "a=\"",
        "target.x=1",
        "clients=,",
        &deep_set,
    ] {
        survive(plan::DEFAULT_PLAN, &[set.to_owned()], true);
    }
}
