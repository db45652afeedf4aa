//! SVG marks, texts and drawings, within a page that has the colors, or as files of their own.

use maud::{Markup, PreEscaped, html as markup};

use super::scale::Scale;
use crate::model::table::Tone;

/// The style of drawings; it uses the colors of the page by name.
pub(crate) const STYLE: &str = include_str!("plot.css");

/// The page's style with the colors.
const COLORS: &str = include_str!("../printers/html/style.css");

/// The average width of a letter.
const LETTER: f64 = 7.0;

/// In a file: the space around panels, the height of the title and of a line of text, and the
/// width from which on panels continue below.
pub(super) const GAP: f64 = 24.0;
const HEAD: f64 = 36.0;
const LINE: f64 = 18.0;
const WIDTH_MAX: f64 = 1340.0;
/// The height of a line of a long title, and the size of its letters relative to others.
const HEAD_LINE: f64 = 24.0;
const HEAD_SIZE: f64 = 1.5;

/// The end of a name that was cut.
const CUT: &str = "\u{2026}";

/// A drawing of a fixed size.
pub(crate) struct Panel {
    pub width: f64,
    pub height: f64,
    pub title: String,
    /// The title and the figures, for screen readers.
    pub label: String,
    pub body: Markup,
}

impl Panel {
    /// Returns the drawing as a part of a page.
    pub(crate) fn inline(&self) -> Markup {
        let Self { width, height, title, label, body } = self;
        markup! {
            svg.drawn role="img" aria-label=(label) width=(px(*width)) height=(px(*height))
                viewBox={ "0 0 " (px(*width)) " " (px(*height)) } {
                title { (title) }
                (body)
            }
        }
    }
}

/// Returns a self-contained SVG file of panels, with a title above and a legend below. Without a
/// given width, the file is as wide as its panels need.
pub(super) fn file(
    title: &str,
    panels: &[Panel],
    keys: &[(Markup, String)],
    note: &str,
    width: Option<f64>,
) -> String {
    let heads = match width {
        Some(width) => lines(title, ((width - 2.0 * GAP) / (LETTER * HEAD_SIZE)) as usize),
        None => vec![title.to_owned()],
    };
    let top = HEAD + HEAD_LINE * (heads.len().max(1) - 1) as f64 + GAP;

    let placed = place_panels(panels, top, width.map_or(WIDTH_MAX, |width| width - GAP));

    let needed = placed.width.max(text_width(title) * HEAD_SIZE + 2.0 * GAP).max(400.0);
    let width = width.unwrap_or(needed);
    let legend = place_keys(keys, width, placed.next_y);

    let mut y = if keys.is_empty() { legend.next_y } else { legend.next_y + 6.0 };
    let mut notes = Vec::new();
    for line in lines(note, ((width - 2.0 * GAP) / LETTER) as usize) {
        y += LINE;
        notes.push((y, line));
    }
    let height = y + GAP;

    let drawing = markup! {
        svg.drawn xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(title) width=(px(width)) height=(px(height))
            viewBox={ "0 0 " (px(width)) " " (px(height)) } {
            title { (title) }
            style { (PreEscaped(fixed_style())) }
            rect.paper width="100%" height="100%" {}
            @for (number, head) in heads.iter().enumerate() {
                text.head x=(px(GAP)) y=(px(HEAD + HEAD_LINE * number as f64)) { (head) }
            }
            @for At { x, y, item: panel } in &placed.items { g transform={ "translate(" (px(*x)) " " (px(*y)) ")" } { (panel.body) } }
            @for At { x, y, item: (mark, text) } in &legend.items {
                g transform={ "translate(" (px(*x)) " " (px(*y)) ")" } { (mark) }
                text.soft x=(px(x + 30.0)) y=(px(y + 4.0)) { (text) }
            }
            @for (y, line) in &notes { text.soft x=(px(GAP)) y=(px(*y)) { (line) } }
        }
    };
    drawing.into_string() + "\n"
}

/// Something at a position in a file.
struct At<'a, T> {
    x: f64,
    y: f64,
    item: &'a T,
}

/// Panels or keys, laid out in lines from left to right.
struct Placed<'a, T> {
    items: Vec<At<'a, T>>,
    /// The right side of the widest line, with a gap.
    width: f64,
    /// The position of what follows.
    next_y: f64,
}

/// Lays out panels below `top`. Those that would end beyond `right` continue below.
fn place_panels(panels: &[Panel], top: f64, right: f64) -> Placed<'_, Panel> {
    let mut items = Vec::new();
    let (mut x, mut y) = (GAP, top);
    let (mut row_height, mut width) = (0.0_f64, 0.0_f64);

    for panel in panels {
        // A width that was divided is not exact.
        if x > GAP && x + panel.width > right + 0.5 {
            x = GAP;
            y += row_height + GAP;
            row_height = 0.0;
        }

        items.push(At { x, y, item: panel });
        row_height = row_height.max(panel.height);
        x += panel.width + GAP;
        width = width.max(x);
    }

    y += row_height + GAP;
    Placed { items, width, next_y: y }
}

/// Lays out a legend whose first line is at `top`.
fn place_keys(keys: &[(Markup, String)], width: f64, top: f64) -> Placed<'_, (Markup, String)> {
    let mut items = Vec::new();
    let (mut x, mut y) = (GAP, top);

    for key in keys {
        let advance = text_width(&key.1) + 44.0;
        if x > GAP && x + advance > width {
            x = GAP;
            y += LINE;
        }
        items.push(At { x, y, item: key });
        x += advance;
    }

    Placed { items, width, next_y: y }
}

/// Returns the style with the page's light colors instead of variables, which not every SVG program
/// knows.
fn fixed_style() -> String {
    let mut parts = STYLE.split("var(--");
    let mut style = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once(')').unwrap_or((part, ""));

        // The first definition is that for light screens.
        let definition = COLORS.split_once(&format!("--{name}: "));
        let value = definition.and_then(|(_, after)| after.split_once(';'));
        style += value.map_or("currentColor", |(value, _)| value);
        style += rest;
    }
    style
}

/// Breaks a text at spaces into lines of at most `most` letters.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// Formats a length with tenths of a pixel.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
}

/// Estimates the width of a text.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Cuts a name to a width.
pub(super) fn cut(name: &str, width: f64) -> String {
    let most = (width / LETTER) as usize;
    if name.chars().count() > most {
        name.chars().take(most.saturating_sub(1)).collect::<String>() + CUT
    } else {
        name.to_string()
    }
}

/// The marks with their meanings.
pub(super) const MARKS: [(Tone, &str); 6] = [
    (Tone::Faster, "faster than the base"),
    (Tone::Slower, "slower than the base"),
    (Tone::Plain, "equal: a change that matters is ruled out"),
    (Tone::Noisy, "too noisy to say"),
    (Tone::Unjudged, "measured once: no verdict"),
    (Tone::SlaMissed, RATE_MISSED),
];

/// The meaning of the mark of a missed rate.
pub(super) const RATE_MISSED: &str = "requested rate missed";

/// Draws a mark; its shape alone shows the verdict.
pub(super) fn mark(tone: Tone, x: f64, y: f64) -> Markup {
    const R: f64 = 5.0;
    let path = |points: [(f64, f64); 4]| {
        let corners = points.map(|(dx, dy)| format!("{} {}", px(x + dx), px(y + dy)));
        format!("M{}Z", corners.join("L"))
    };
    let triangle =
        |up: f64| path([(0.0, -R * up), (R, R * 0.8 * up), (-R, R * 0.8 * up), (0.0, -R * up)]);

    markup! {
        @match tone {
            Tone::Faster => path.better d=(triangle(1.0)) {},
            Tone::Slower => path.worse d=(triangle(-1.0)) {},
            Tone::Unjudged => path.open d=(path([(0.0, -R), (R, 0.0), (0.0, R), (-R, 0.0)])) {},
            Tone::SlaMissed => text x=(px(x)) y=(px(y + 7.0)) text-anchor="middle" { (tone.mark()) },
            Tone::Noisy => circle.open cx=(px(x)) cy=(px(y)) r="4" {},
            _ => circle.even cx=(px(x)) cy=(px(y)) r="4" {},
        }
    }
}

/// Returns the path of an interval with a cap at each end; an end beyond the axis is an arrow.
pub(super) fn whisker(ends: [(f64, f64); 2], are_cut: [bool; 2]) -> String {
    const SIZE: f64 = 4.0;
    let [(from_x, from_y), (to_x, to_y)] = ends;
    let point = |x: f64, y: f64| format!("{} {}", px(x), px(y));
    let mut path = format!("M{}L{}", point(from_x, from_y), point(to_x, to_y));

    // The caps are perpendicular to the line; ends of an arrow lean back along it.
    let length = (to_x - from_x).hypot(to_y - from_y).max(1e-9);
    let (dx, dy) = ((to_x - from_x) / length * SIZE, (to_y - from_y) / length * SIZE);
    for (((x, y), is_cut), inward) in ends.into_iter().zip(are_cut).zip([1.0, -1.0]) {
        let back = if is_cut { inward } else { 0.0 };
        let side = |sign: f64| point(x + back * dx - sign * dy, y + back * dy + sign * dx);
        path += &format!("M{}L{}L{}", side(1.0), point(x, y), side(-1.0));
    }
    path
}

/// Draws a dot for each repeat; those beyond an end of the axis are one arrow there. `place`
/// returns the position of a value. All dots are one path, since a page may have thousands.
pub(super) fn repeat_dots(
    values: &[f64],
    scale: &Scale,
    place: impl Fn(f64) -> (f64, f64),
) -> Markup {
    let inside = values.iter().filter(|value| !scale.is_beyond(**value));
    let dots: String = inside.map(|value| dot(place(*value))).collect();

    let (low, high) = (place(scale.low), place(scale.high));
    let mut beyond = values.iter().filter(|value| scale.is_beyond(**value));
    let (mut arrows, is_above) = (String::new(), beyond.clone().any(|value| *value > scale.high));
    if beyond.any(|value| *value < scale.low) {
        arrows += &arrow_head(high, low);
    }
    if is_above {
        arrows += &arrow_head(low, high);
    }

    markup! {
        @if !dots.is_empty() { path.repeats d=(dots) {} }
        @if !arrows.is_empty() { path.beyond d=(arrows) {} }
    }
}

/// Draws the dot of a repeat for a legend.
pub(super) fn repeat_mark(x: f64, y: f64) -> Markup {
    markup! { path.repeats d=(dot((x, y))) {} }
}

/// Returns the path of a dot: a line without length, whose round ends are visible.
fn dot((x, y): (f64, f64)) -> String {
    format!("M{} {}h0", px(x), px(y))
}

/// Returns the path of an arrow without its shaft.
fn arrow_head((from_x, from_y): (f64, f64), (x, y): (f64, f64)) -> String {
    const SIZE: f64 = 3.0;
    let length = (x - from_x).hypot(y - from_y).max(1e-9);
    let (dx, dy) = ((x - from_x) / length * SIZE, (y - from_y) / length * SIZE);
    let side = |sign: f64| format!("{} {}", px(x - dx - sign * dy), px(y - dy + sign * dx));
    format!("M{}L{} {}L{}", side(1.0), px(x), px(y), side(-1.0))
}

/// Returns the CSS class of a mark.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Faster => "better",
        Tone::Slower => "worse",
        Tone::Plain => "even",
        _ => "open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_colors_and_no_names_of_them() {
        let style = fixed_style();
        assert!(!style.contains("var("), "{style}");
        assert!(!style.contains("currentColor;") || style.contains(".c0"), "{style}");
        assert!(style.contains("#0b62a4"), "{style}");
        // It stands in XML as it is.
        assert!(!style.contains(['<', '&']), "{style}");
    }

    #[test]
    fn each_repeat_is_a_dot_and_those_beyond_the_axis_are_an_arrow_at_its_end() {
        let scale = Scale::ratios(2_f64.ln());
        let drawn = |values: &[f64]| {
            let place = |value| (100.0 * scale.share(value), 7.0);
            repeat_dots(values, &scale, place).into_string()
        };
        let inside = drawn(&[1.0, 2.0, 1.0]);
        assert_eq!(inside, "<path class=\"repeats\" d=\"M50 7h0M100 7h0M50 7h0\"></path>");
        let beyond = drawn(&[0.0, 0.1, 1.0, 9.0]);
        assert!(beyond.contains("\"M50 7h0\""), "{beyond}");
        let arrows = "<path class=\"beyond\" d=\"M3 4L0 7L3 10M97 10L100 7L97 4\"></path>";
        assert!(beyond.ends_with(arrows), "{beyond}");
        assert_eq!(drawn(&[]), "");
    }

    #[test]
    fn texts_are_broken_where_they_have_blanks_and_names_are_cut() {
        assert_eq!(lines("one two three", 8), ["one two", "three"]);
        assert_eq!(lines("", 8), [""; 0]);
        assert_eq!(cut("l.i0", 100.0), "l.i0");
        assert_eq!(cut("fwdrangewhilewriting", 70.0), "fwdrangew\u{2026}");
    }
}
