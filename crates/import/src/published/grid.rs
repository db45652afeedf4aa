//! Tables of text as blocks of rows.

/// A block of rows, with the line before it as its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The name of a step.
    pub name: String,
    /// The block has values relative to the first row.
    pub is_relative: bool,
    /// The names of columns; empty without a header.
    pub header: Vec<String>,
    pub rows: Vec<Row>,
}

/// A row with its label, which is the last cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub label: String,
    pub cells: Vec<String>,
}

/// Reads blocks of rows with a label at the end. Empty cells are left out: headers have some that
/// rows lack.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = vec![Block::default()];
    for line in text.lines() {
        let line = line.trim();
        let cells: Vec<String> = line
            .split('\t')
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(Into::into)
            .collect();
        let Some((label, values)) = cells.split_last() else {
            continue;
        };

        let last = blocks.last_mut();
        let name = last.as_ref().map_or(String::new(), |last| last.name.clone());
        if let Some(kind) = line.strip_prefix("--- ") {
            let is_relative = kind.contains("relative");
            let header = last.map_or(Vec::new(), |last| last.header.clone());
            blocks.push(Block { name, is_relative, header, rows: Vec::new() });
        } else if line.contains(" : ") || line.starts_with("Relative to") {
            // Names of columns, which the rows have by their places.
        } else if values.is_empty() && !is_number(label) {
            blocks.push(Block { name: label.clone(), ..Block::default() });
        } else if !values.is_empty() && !values.iter().any(|value| is_value(value)) {
            if let Some(last) = last.filter(|last| last.rows.is_empty()) {
                last.header = cells.clone();
            } else {
                blocks.push(Block { name, header: cells, ..Block::default() });
            }
        } else if let Some(last) = last {
            last.rows.push(Row { label: label.clone(), cells: values.to_vec() });
        }
    }
    blocks.retain(|block| !block.rows.is_empty());
    blocks
}

/// Returns the targets of the columns of a table: `col-1 : NAME`.
pub fn targets(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with("col-"));
    lines.filter_map(|line| Some(line.split_once(" : ")?.1.trim().to_owned())).collect()
}

/// Returns the rows of a CSV with the label first.
pub fn csv(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim().split(',').filter(|cell| !cell.is_empty()).collect();
        if let Some((label, cells)) = cells.split_first() {
            let cells = cells.iter().map(|cell| (*cell).to_owned()).collect();
            rows.push(Row { label: (*label).to_owned(), cells });
        }
    }
    rows
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn is_value(text: &str) -> bool {
    is_number(text) || matches!(text, "NA" | "inf" | "-")
}

/// Returns a ratio as the author prints it: 0/0 is 1, x/0 is `inf`, and `NA` stays.
pub fn ratio(value: &str, base: &str, decimals: usize) -> Result<String, String> {
    if value == "NA" || base == "NA" {
        return Ok("NA".to_owned());
    }
    let number = |text: &str| text.parse::<f64>().map_err(|_| format!("`{text}` is not a number"));
    let (value, base) = (number(value)?, number(base)?);
    Ok(match (value == 0.0, base == 0.0) {
        (true, true) => "1".to_owned(),
        (false, true) => "inf".to_owned(),
        _ => format!("{:.decimals$}", value / base),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_zeros_have_their_own_rules() {
        assert_eq!(ratio("0", "0.000", 2).unwrap(), "1");
        assert_eq!(ratio("0.1", "0", 2).unwrap(), "inf");
        assert_eq!(ratio("NA", "0", 2).unwrap(), "NA");
        assert_eq!(ratio("95", "113", 2).unwrap(), "0.84");
    }

    #[test]
    fn blocks_have_names_headers_and_rows() {
        let text =
            "l.i0\nips\tqps\ttag\n1\t2\ta\n-\t-\t-\n3\tNA\tb\n\nl.x\nips\tqps\ttag\n5\t6\ta\n";
        let blocks = blocks(text);
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].name.as_str(), blocks[0].rows.len()), ("l.i0", 3));
        assert_eq!(blocks[1].header, ["ips", "qps", "tag"]);
    }
}
