//! Rows as CSV (RFC 4180).
//!
//! A cell of text that a spreadsheet would take for a formula gets an apostrophe in front: names and descriptions are
//! anybody's.

use serde_json::Value;

use super::rows::Table;

/// What a formula begins with; the last two are skipped by some programs before they look.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The whole file, with a line of names.
#[must_use]
pub fn csv(table: &Table) -> String {
    let mut file = String::new();
    let names = table.columns.iter().map(|name| Value::from(name.as_str()));
    line(&mut file, names);
    for row in &table.rows {
        line(&mut file, row.iter().cloned());
    }
    file
}

fn line(file: &mut String, cells: impl Iterator<Item = Value>) {
    for (number, value) in cells.enumerate() {
        if number > 0 {
            file.push(',');
        }
        cell(file, &value);
    }
    file.push_str("\r\n");
}

fn cell(file: &mut String, value: &Value) {
    let text = match value {
        Value::Null => return,
        Value::String(text) if text.starts_with(FORMULA) => format!("'{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains([',', '"', '\r', '\n']) || text.starts_with(' ') || text.ends_with(' ') {
        file.push('"');
        file.push_str(&text.replace('"', "\"\""));
        file.push('"');
    } else {
        file.push_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formula_is_left() {
        let rows = vec![
            vec![json!("=1+1"), json!("a,b"), json!(-3)],
            vec![json!("+x"), json!("say \"hi\"\n"), json!(null)],
            vec![json!("@SUM(A1)"), json!("-1"), json!(true)],
            vec![json!("\t=1"), json!("a=b"), json!(1.5)],
        ];
        let table = Table { columns: ["a", "b", "c"].map(str::to_owned).to_vec(), rows };
        let expected =
            "a,b,c\r\n'=1+1,\"a,b\",-3\r\n'+x,\"say \"\"hi\"\"\n\",\r\n'@SUM(A1),'-1,true\r\n'\t=1,a=b,1.5\r\n";
        assert_eq!(csv(&table), expected);
    }
}
