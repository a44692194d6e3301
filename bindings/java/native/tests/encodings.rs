//! The encodings that Java writes are those of zubilo-typed: both read one file of examples, and this test makes a
//! store for Java's and reads one of Java's.

use std::path::Path;

use zubilo::Options;
use zubilo_typed::{Multimap, Native, Table, Value};

const EXAMPLES: &str = "../src/test/resources/zubilo/encodings.txt";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn encoded<T: Value>(tag: &str, input: T::Input<'_>) -> String {
    let mut own = String::new();
    T::tag(&mut own);
    assert_eq!(own, tag);
    let mut bytes = Vec::new();
    T::encode(input, &mut bytes).unwrap();
    T::decode(&bytes).unwrap();
    hex(&bytes)
}

#[test]
fn the_examples_are_right() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLES)).unwrap();
    let mut count = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [tag, value, bytes] = fields[..] else { panic!("{line}") };
        let parts: Vec<String> = value.split('|').map(|part| part.replace('␀', "\0")).collect();
        let part = |i: usize| parts[i].as_str();
        let got = match tag {
            "i8" => encoded::<i8>(tag, value.parse().unwrap()),
            "i16" => encoded::<i16>(tag, value.parse().unwrap()),
            "i32" => encoded::<i32>(tag, value.parse().unwrap()),
            "i64" => encoded::<i64>(tag, value.parse().unwrap()),
            "u8" => encoded::<u8>(tag, value.parse().unwrap()),
            "u16" => encoded::<u16>(tag, value.parse().unwrap()),
            "u32" => encoded::<u32>(tag, value.parse().unwrap()),
            "u64" => encoded::<u64>(tag, value.parse().unwrap()),
            "f32" => encoded::<f32>(tag, value.parse().unwrap()),
            "f64" => encoded::<f64>(tag, value.parse().unwrap()),
            "bool" => encoded::<bool>(tag, value.parse().unwrap()),
            "char" => encoded::<char>(tag, char::from_u32(value.parse().unwrap()).unwrap()),
            "str" => encoded::<&str>(tag, value),
            "bytes" => encoded::<&[u8]>(tag, &unhex(value)),
            "option<i8>" => encoded::<Option<i8>>(tag, value.parse().ok()),
            "(str,u32)" => encoded::<(&str, u32)>(tag, (part(0), part(1).parse().unwrap())),
            "(str,str)" => encoded::<(&str, &str)>(tag, (part(0), part(1))),
            "(bytes,option<str>,i8)" => encoded::<(&[u8], Option<&str>, i8)>(
                tag,
                (&unhex(part(0)), Some(part(1)), part(2).parse().unwrap()),
            ),
            "native-u32" => encoded::<Native<u32>>(tag, value.parse().unwrap()),
            "native-u64" => encoded::<Native<u64>>(tag, value.parse().unwrap()),
            other => panic!("no codec for {other}"),
        };
        assert_eq!(got, bytes, "{line}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

const CITIES: Table<(&str, &str), i64> = Table::new("cities").counted();
const TAGS: Multimap<&str, u32> = Multimap::new("tags");

/// `ZUBILO_SHARED` names a store: with `-rust` in its name it is made here, for Java to read; else Java has made it.
#[test]
fn a_store_is_shared_with_java() {
    let Some(path) = std::env::var_os("ZUBILO_SHARED") else {
        eprintln!("not asked for: bindings/java/test.sh sets ZUBILO_SHARED");
        return;
    };
    let env = Options::new().open(&path).unwrap();
    if path.to_string_lossy().contains("-rust") {
        let mut txn = env.write().unwrap();
        let mut cities = CITIES.open_mut(&mut txn).unwrap();
        cities.put(("fr", "Lyon"), 522_250).unwrap();
        cities.put(("at", "Graz"), -1).unwrap();
        let mut tags = TAGS.open_mut(&mut txn).unwrap();
        for tag in [30, 10, 20] {
            tags.insert("rust", tag).unwrap();
        }
        txn.commit().unwrap();
        return;
    }
    let txn = env.read().unwrap();
    let cities = CITIES.open(&txn).unwrap();
    assert_eq!(cities.get(("fr", "Lyon")).unwrap(), Some(522_250));
    assert_eq!(cities.get(("at", "Graz")).unwrap(), Some(-1));
    assert_eq!(cities.rank(("b", "")).unwrap(), 1);
    let tags = TAGS.open(&txn).unwrap();
    let numbers: Vec<u32> = tags.get("java").unwrap().map(Result::unwrap).collect();
    assert_eq!(numbers, [1, 2, 4_000_000_000]);
    assert!(env.check(&mut |_, _| true).unwrap().is_ok());
}
