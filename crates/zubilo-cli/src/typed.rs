//! What the crate `zubilo-typed` notes in a store: the types of a table's keys and values.

use zubilo::{Error, ReadTxn, Result};

use crate::encoding::Encoding;

/// The table of these notes: names of tables, and texts such as `table<u64, str>`.
const TYPES: &str = "zubilo.types";

/// The types of a table's keys and values, if it is a typed one.
pub(crate) fn types_of(read: &ReadTxn, name: &[u8]) -> Result<Option<String>> {
    match read.table(TYPES) {
        Ok(types) => Ok(types.get(name)?.map(|types| String::from_utf8_lossy(types).into_owned())),
        Err(Error::NoSuchTable { .. } | Error::Incompatible { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How keys and values of these types are written best; none where their bytes have no simple form.
pub(crate) fn encodings_of(types: &str) -> (Option<Encoding>, Option<Encoding>) {
    let inner = types.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>'));
    let Some((inner, _)) = inner else { return (None, None) };
    let mut depth = 0i32;
    let comma = inner.char_indices().find(|(_, c)| {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && *c == ','
    });
    let Some((at, _)) = comma else { return (None, None) };
    let (key, value) = inner.split_at(at);
    (encoding_of(key), encoding_of(value.trim_start_matches(',').trim_start()))
}

fn encoding_of(tag: &str) -> Option<Encoding> {
    match tag {
        "native-u32" => Some(Encoding::U32Native),
        "native-u64" => Some(Encoding::U64Native),
        tag => Encoding::of_name(tag.as_bytes()).filter(|encoding| encoding.number().is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_known_by_the_types_that_were_noted() {
        for (types, due) in [
            ("table<u64, str>", (Some(Encoding::U64), None)),
            ("multimap<i32, f64> 2", (Some(Encoding::I32), Some(Encoding::F64))),
            ("table<(str,u32), postcard> person 1", (None, None)),
            (
                "table<native-u32, native-u64>",
                (Some(Encoding::U32Native), Some(Encoding::U64Native)),
            ),
            ("table<option<u8>, u16>", (None, Some(Encoding::U16))),
            ("table<u128, ()>", (None, None)),
            ("nonsense", (None, None)),
            ("table<u64", (None, None)),
            ("table<hex, text>", (None, None)),
        ] {
            assert_eq!(encodings_of(types), due, "{types}");
        }
    }
}
