//! Typed tables from Rust, for the tests of the Python package: `interop write STORE` makes them, `interop check
//! STORE` opens them with the same types and compares each record, `interop add STORE` adds one beside a
//! process that has the store open. `tests/test_rust.py` makes the same records.

use std::fmt::Debug;

use zubilo::{Env, Options};
use zubilo_typed::{Aligned, Multimap, Native, Result, Table};

const COUNT: i64 = 200;

const NUMBERS: Table<i64, &str> = Table::new("numbers");
const SCORES: Table<(&str, u32), f64> = Table::new("scores");
const FLAGS: Table<&[u8], bool> = Table::new("flags");
const NATIVE: Table<Native<u64>, f32> = Table::new("native");
const TAGS: Multimap<&str, i16> = Multimap::new("tags");
const VECTORS: Table<u32, Aligned<[f32]>> = Table::new("vectors").version("<f4[4]");

fn text(n: i64) -> String {
    format!("ключ {}\0{n}", n % 7)
}

fn number(n: i64) -> i64 {
    (n - COUNT / 2) * 46_116_860_184_273_879
}

fn write(env: &Env) -> Result<()> {
    let mut w = env.write()?;
    for n in 0..COUNT {
        let short = n as u32;
        NUMBERS.open_mut(&mut w)?.put(number(n), &text(n))?;
        SCORES.open_mut(&mut w)?.put((&text(n), short), n as f64 / -3.0)?;
        FLAGS.open_mut(&mut w)?.put(&[0, n as u8, 255], n % 3 == 0)?;
        NATIVE.open_mut(&mut w)?.put(u64::MAX - n as u64 * 257, n as f32 * 0.1)?;
        TAGS.open_mut(&mut w)?.insert(&text(n % 7), (n * 300 - 30_000) as i16)?;
        VECTORS.open_mut(&mut w)?.put(short, &[n as f32, 0.5, -0.0, f32::INFINITY])?;
    }
    w.commit()?;
    Ok(())
}

/// One record found, and what is due.
fn same<T: PartialEq + Debug>(table: &str, n: i64, found: Option<T>, due: T) {
    assert_eq!(found, Some(due), "table {table}, record {n}");
}

fn check(env: &Env) -> Result<()> {
    let r = env.read()?;
    let (numbers, scores, flags) = (NUMBERS.open(&r)?, SCORES.open(&r)?, FLAGS.open(&r)?);
    let (native, tags, vectors) = (NATIVE.open(&r)?, TAGS.open(&r)?, VECTORS.open(&r)?);
    for n in 0..COUNT {
        let short = n as u32;
        same("numbers", n, numbers.get(number(n))?, &*text(n));
        same("scores", n, scores.get((&text(n), short))?, n as f64 / -3.0);
        same("flags", n, flags.get(&[0, n as u8, 255])?, n % 3 == 0);
        same("native", n, native.get(u64::MAX - n as u64 * 257)?, n as f32 * 0.1);
        assert!(tags.contains(&text(n % 7), (n * 300 - 30_000) as i16)?, "tags, record {n}");
        same("vectors", n, vectors.get(short)?, &[n as f32, 0.5, -0.0, f32::INFINITY][..]);
    }
    let counts =
        [numbers.len(), scores.len(), flags.len(), native.len(), tags.len(), vectors.len()];
    assert_eq!(counts, [COUNT as u64; 6]);
    let mut last = None;
    for record in numbers.iter() {
        let (key, _) = record?;
        assert!(last < Some(key), "the order of the keys");
        last = Some(key);
    }
    Ok(())
}

fn add(env: &Env) -> Result<()> {
    let mut w = env.write()?;
    NUMBERS.open_mut(&mut w)?.put(i64::MAX, "from Rust")?;
    w.commit()?;
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, path] = &arguments[..] else { panic!("interop write|check|add STORE") };
    let env = Options::new().open(path)?;
    match what.as_str() {
        "write" => write(&env),
        "check" => check(&env),
        "add" => add(&env),
        _ => panic!("interop write|check|add STORE"),
    }
}
