//! Edits of a JSON text, as replaced byte ranges.
//!
//! A new element gets the same spacing as the last element before it. So an indented file stays
//! indented and a compact file stays compact. In an empty array or object, the new element is
//! indented by two spaces more than the line of the opening bracket. The exception is a text of one
//! line, such as `{"members":[]}`, which stays one line.

use super::parse_slices::{Array, Object, span};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;

/// Replaces a byte range of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    range: Range<usize>,
    text: String,
}

/// Applies `edits` to `root`. Their ranges must not overlap.
pub fn apply_edits(root: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.range.start);
    let mut edited = String::with_capacity(root.len() + edits.iter().map(|e| e.text.len()).sum::<usize>());
    let mut done = 0;
    for edit in edits {
        edited.push_str(&root[done..edit.range.start]);
        edited.push_str(&edit.text);
        done = edit.range.end;
    }
    edited.push_str(&root[done..]);
    edited
}

impl<'a> Array<'a> {
    /// Appends `value`.
    pub fn push(&self, value: &impl Serialize) -> Edit {
        self.push_all(std::slice::from_ref(value))
    }

    /// Appends `values` in their order. `values` must not be empty.
    pub fn push_all(&self, values: &[impl Serialize]) -> Edit {
        let last_two = &self.elements[self.elements.len().saturating_sub(2)..];
        let items: Vec<Range<usize>> = last_two.iter().map(|e| span(self.text, e)).collect();
        let gap = ItemSpacing::spacing_between_items(self.text, &self.span, &items);
        let texts: Vec<String> = values.iter().map(|value| gap.render(value)).collect();
        gap.insert(&texts.join(&format!(",{}", gap.space_before)))
    }

    /// Inserts `value` before the element at `index`. `None` if there is no such element.
    pub fn insert(&self, index: usize, value: &impl Serialize) -> Option<Edit> {
        let at = span(self.text, self.elements.get(index)?).start;
        let last_two = &self.elements[self.elements.len().saturating_sub(2)..];
        let items: Vec<Range<usize>> = last_two.iter().map(|e| span(self.text, e)).collect();
        let gap = ItemSpacing::spacing_between_items(self.text, &self.span, &items);
        Some(Edit { range: at..at, text: format!("{},{}", gap.render(value), gap.space_before) })
    }

    /// Removes the element at `index` and its comma. `None` if there is no such element.
    pub fn remove(&self, index: usize) -> Option<Edit> {
        removal_edit(&self.span, &self.item_spans(), index..index + 1)
    }

    /// Removes all elements for which `is_removed` returns true, with their commas.
    pub fn remove_all(&self, mut is_removed: impl FnMut(&RawValue) -> bool) -> Vec<Edit> {
        let items = self.item_spans();
        let removed: Vec<bool> = self.elements.iter().map(|element| is_removed(element)).collect();
        let mut edits = Vec::new();
        let mut from = 0;
        for run in removed.chunk_by(|one, next| one == next) {
            let range = from..from + run.len();
            from = range.end;
            edits.extend(removal_edit(&self.span, &items, range).filter(|_| run[0]));
        }
        edits
    }

    fn item_spans(&self) -> Vec<Range<usize>> {
        self.elements.iter().map(|element| span(self.text, element)).collect()
    }
}

impl<'a> Object<'a> {
    /// Sets fields. A field that exists is replaced in place. Other fields are appended at the end,
    /// in the given order.
    pub fn set(&self, fields: &[(&str, Value)]) -> Vec<Edit> {
        let items = self.item_spans();
        let gap = ItemSpacing::spacing_between_items(self.text, &self.span, &items);
        let mut edits = Vec::new();
        let mut appended = Vec::new();
        for (key, value) in fields {
            match self.position(key) {
                Some(at) => {
                    let range = span(self.text, self.fields[at].1);
                    edits.push(Edit { range, text: gap.render(value) });
                }
                None => appended.push(format!(
                    "{}{}{}",
                    Value::from(*key),
                    self.key_separator(&gap),
                    gap.render(value)
                )),
            }
        }
        if !appended.is_empty() {
            edits.push(gap.insert(&appended.join(&format!(",{}", gap.space_before))));
        }
        edits
    }

    /// Removes the last field with this key, and its comma. `None` if there is no such field.
    pub fn remove(&self, key: &str) -> Option<Edit> {
        let at = self.position(key)?;
        removal_edit(&self.span, &self.item_spans(), at..at + 1)
    }

    fn item_spans(&self) -> Vec<Range<usize>> {
        let item =
            |(key, value): &(&RawValue, &RawValue)| span(self.text, key).start..span(self.text, value).end;
        self.fields.iter().map(item).collect()
    }

    fn key_separator(&self, gap: &ItemSpacing) -> &'a str {
        match self.fields.last() {
            Some((key, value)) => &self.text[span(self.text, key).end..span(self.text, value).start],
            None if gap.indent.is_some() => ": ",
            None => ":",
        }
    }
}

/// Removes the items of the range `run`, which must not be empty. `None` if `run` is out of bounds.
fn removal_edit(container: &Range<usize>, items: &[Range<usize>], run: Range<usize>) -> Option<Edit> {
    let removed = items.get(run.clone())?;
    let range = match (run.start.checked_sub(1), items.get(run.end)) {
        (Some(before), _) => items[before].end..removed.last()?.end,
        (None, Some(after)) => removed.first()?.start..after.start,
        (None, None) => container.start + 1..container.end - 1,
    };
    Some(Edit { range, text: String::new() })
}

/// The spacing of the items of one container, and the place of the next item.
struct ItemSpacing {
    insert_at: Range<usize>,
    comma: &'static str,
    space_before: String,
    space_after: String,
    /// The indentation of items. `None` if items share a line.
    indent: Option<String>,
}

impl ItemSpacing {
    fn spacing_between_items(root: &str, container: &Range<usize>, items: &[Range<usize>]) -> ItemSpacing {
        let Some(last) = items.last() else { return ItemSpacing::spacing_in_empty(root, container) };
        let from = if items.len() > 1 { items[items.len() - 2].end } else { container.start };
        // Only white space and one comma or bracket can stand between two items.
        let before = root[from..last.start].trim_start();
        let before = before.get(1..).unwrap_or_default().to_owned();
        let indent = before.rfind('\n').map(|at| before[at + 1..].to_owned());
        ItemSpacing {
            insert_at: last.end..last.end,
            comma: ",",
            space_before: before,
            space_after: String::new(),
            indent,
        }
    }

    fn spacing_in_empty(root: &str, container: &Range<usize>) -> ItemSpacing {
        let at = container.start + 1..container.end - 1;
        let line = root[..container.start].rfind('\n').map_or(0, |at| at + 1);
        let line = root[line..container.start].trim_start_matches('\u{feff}');
        if !line.is_empty() && !root.contains('\n') {
            return ItemSpacing {
                insert_at: at,
                comma: "",
                space_before: String::new(),
                space_after: String::new(),
                indent: None,
            };
        }
        let base = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let before = format!("\n{base}  ");
        ItemSpacing {
            insert_at: at,
            comma: "",
            space_before: before,
            space_after: format!("\n{base}"),
            indent: Some(format!("{base}  ")),
        }
    }

    fn render(&self, value: &impl Serialize) -> String {
        let text = match self.indent {
            Some(_) => serde_json::to_string_pretty(value),
            None => serde_json::to_string(value),
        };
        let text = text.expect("values have string keys and no failing impl");
        match &self.indent {
            // Indents all lines of the pretty-printed value except the first. Strings do not
            // change, because line breaks in them are escaped.
            Some(indent) => text.replace('\n', &format!("\n{indent}")),
            None => text,
        }
    }

    fn insert(&self, text: &str) -> Edit {
        Edit {
            range: self.insert_at.clone(),
            text: format!("{}{}{text}{}", self.comma, self.space_before, self.space_after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(text: &str, fields: &[(&str, Value)]) -> String {
        apply_edits(text, Object::parse(text).unwrap().set(fields))
    }

    fn push(text: &str, value: &Value) -> String {
        apply_edits(text, vec![Array::parse(text).unwrap().push(value)])
    }

    #[test]
    fn new_element_gets_the_spacing_of_its_siblings() {
        assert_eq!(push("[]", &json!(1)), "[\n  1\n]");
        assert_eq!(push("\u{feff}[ ]", &json!(1)), "\u{feff}[\n  1\n]");
        assert_eq!(push("[1]", &json!([2])), "[1,[2]]");
        assert_eq!(push("[ 1 , 2 ]", &json!(3)), "[ 1 , 2, 3 ]");
        assert_eq!(push("[\n  1\n]\n", &json!({"a": 1})), "[\n  1,\n  {\n    \"a\": 1\n  }\n]\n");
    }

    #[test]
    fn push_all_equals_repeated_push() {
        let all = |text: &str| {
            apply_edits(text, vec![Array::parse(text).unwrap().push_all(&[json!(1), json!([2])])])
        };
        for text in ["[]", " [ ]\n", "[0]", "[\n  0\n]", "\u{feff}[ 7 , 8 ]"] {
            assert_eq!(all(text), push(&push(text, &json!(1)), &json!([2])), "{text}");
        }
    }

    #[test]
    fn field_is_replaced_or_appended() {
        assert_eq!(set(r#"{"a":1e999,"b":1000.0}"#, &[("a", json!(2))]), r#"{"a":2,"b":1000.0}"#);
        assert_eq!(set("{}", &[("a", json!(1)), ("b", json!(2))]), "{\n  \"a\": 1,\n  \"b\": 2\n}");
        let text = "{\n  \"a\": 1\n}";
        assert_eq!(
            set(text, &[("b", json!([1])), ("a", json!(0))]),
            "{\n  \"a\": 0,\n  \"b\": [\n    1\n  ]\n}"
        );
        assert_eq!(set(r#"{"a": 1,"a": 2}"#, &[("a", json!(3))]), r#"{"a": 1,"a": 3}"#);
        assert_eq!(set("\u{feff}{\"a\":1}", &[("a", json!(2))]), "\u{feff}{\"a\":2}");
    }

    #[test]
    fn empty_nested_container_uses_the_indentation_of_its_line() {
        let text = "{\n  \"members\": []\n}";
        let object = Object::parse(text).unwrap();
        let members = Array::from_raw(text, object.get("members").unwrap()).unwrap();
        assert_eq!(apply_edits(text, vec![members.push(&1)]), "{\n  \"members\": [\n    1\n  ]\n}");
    }

    #[test]
    fn removal_includes_the_comma() {
        let removed = |text: &str, key: &str| {
            apply_edits(text, vec![Object::parse(text).unwrap().remove(key).unwrap()])
        };
        assert_eq!(removed(r#"{ "a" : 1, "b": 2, "c": 3}"#, "a"), r#"{ "b": 2, "c": 3}"#);
        assert_eq!(removed(r#"{ "a" : 1, "b": 2, "c": 3}"#, "b"), r#"{ "a" : 1, "c": 3}"#);
        assert_eq!(removed(r#"{ "a" : 1, "b": 2, "c": 3}"#, "c"), r#"{ "a" : 1, "b": 2}"#);
        assert_eq!(removed("{\n  \"a\": 1\n}", "a"), "{}");
        let text = "[\n  1,\n  2\n]";
        assert_eq!(apply_edits(text, vec![Array::parse(text).unwrap().remove(0).unwrap()]), "[\n  2\n]");
        assert!(Array::parse("[]").unwrap().remove(0).is_none());
    }
}
