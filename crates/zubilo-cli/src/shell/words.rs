//! What can be typed: a line's words, and the commands.

/// Commands with their arguments and what they do.
pub(super) const COMMANDS: [(&str, &str, &str); 22] = [
    ("help", "", "this list"),
    ("tables", "", "the tables and their records"),
    ("use", "TABLE", "take another table"),
    ("get", "KEY", "the value of a key, or its values"),
    ("put", "KEY VALUE", "store a record"),
    ("del", "KEY", "remove a key"),
    ("scan", "[PREFIX] [N]", "records in order, those that begin so; N at most (20)"),
    ("from", "KEY [N]", "records from a key on"),
    ("first", "[N]", "the first records"),
    ("last", "[N]", "the last records"),
    ("count", "[PREFIX]", "how many records"),
    ("create", "TABLE", "make a table (`zubilo create` makes those with options)"),
    ("drop", "TABLE", "remove a table with its records"),
    ("begin", "", "begin a transaction: changes wait for its commit"),
    ("commit", "", "commit it"),
    ("abort", "", "forget it"),
    ("snapshot", "", "hold the newest commit: what is read stays as it is"),
    ("release", "", "let it go"),
    ("key", "VIEW", "write keys so: text, escaped, hex, base64, u64, i32, f64 and the like"),
    ("value", "VIEW", "write values so; json too"),
    ("stat", "", "figures of store and table"),
    ("quit", "", "end; so does the end of the input"),
];

/// A line's words. Double quotes hold words together; a backslash stays for who decodes the word, but takes
/// a quote after it along.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if chars.peek() == Some(&'"') => {
                chars.next();
                word.get_or_insert_default().push('"');
            }
            '\\' if chars.peek() == Some(&'\\') => {
                chars.next();
                word.get_or_insert_default().push_str("\\\\");
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if quoted {
        return Err("a quote is not closed".into());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let cases: [(&str, &[&str]); 7] = [
            ("", &[]),
            ("  get  a ", &["get", "a"]),
            ("put \"a b\" \"\"", &["put", "a b", ""]),
            ("put a\\x20b \\\"", &["put", "a\\x20b", "\""]),
            ("put {\\\"a\\\":1}", &["put", "{\"a\":1}"]),
            ("put \\\\\"x y\"", &["put", "\\\\x y"]),
            ("a\"b\"c", &["abc"]),
        ];
        for (line, due) in cases {
            assert_eq!(split(line).unwrap(), due, "{line}");
        }
        assert!(split("put \"a").is_err());
    }
}
