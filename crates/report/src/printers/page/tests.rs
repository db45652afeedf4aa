//! The promises of a page's style.

use std::collections::BTreeSet;

use super::STYLE;

#[test]
fn a_page_has_five_sizes_of_letters() {
    let css = [STYLE, crate::plot::STYLE].concat();
    let sizes: BTreeSet<&str> = css
        .split("font-size:")
        .skip(1)
        .filter_map(|rest| rest.split(['}', ';']).next())
        .map(str::trim)
        .filter(|size| *size != "inherit")
        .collect();
    let named =
        ["title", "head", "text", "small", "tiny"].map(|name| format!("var(--size-{name})"));
    assert_eq!(sizes, named.iter().map(String::as_str).collect());

    // The short form has a size, too.
    for shorthand in css.split(" font: ").skip(1) {
        let is_named = shorthand.starts_with("var(--size-") || shorthand.starts_with("inherit");
        assert!(is_named, "{}", &shorthand[..40]);
    }
}
