//! The questions that programs ask, over the tables and their indexes. Each kind is answered for an
//! example, verified against the data set in memory, then measured over many random queries.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use zubilo::{Env, ReadTxn};

use super::data::Place;
use super::globe;
use super::report::{self, Report};
use super::store;

/// No kind of query is measured for longer than this.
const LIMIT: Duration = Duration::from_millis(700);

/// Positions of the examples, in hundred-thousandths of a degree.
const SIGHTS: [(&str, i32, i32); 4] = [
    ("the Eiffel Tower", 4_885_837, 229_448),
    ("Mount Everest", 2_798_806, 8_692_528),
    ("Point Nemo", -4_887_667, -12_339_333),
    ("the South Pole", -9_000_000, 0),
];

/// The places whose names start with `prefix`, in the order of names.
fn named(read: &ReadTxn, prefix: &str) -> Result<Vec<Place>> {
    let places = read.table(store::PLACES)?;
    let mut found = Vec::new();
    for entry in read.table(store::BY_NAME)?.prefix(prefix.to_lowercase()) {
        let id = store::id_of(entry?.0)?;
        let record = places.get(id.to_be_bytes())?.context("an index entry without a record")?;
        found.push(store::decode(id, record)?);
    }
    Ok(found)
}

/// The northernmost places of a country: its part of the index from the end.
fn northernmost(read: &ReadTxn, country: [u8; 2], count: usize) -> Result<Vec<Place>> {
    let from_the_north = read.table(store::BY_LATITUDE)?.prefix(country).rev().take(count);
    from_the_north.map(|entry| store::place(read, store::id_of(entry?.0)?)).collect()
}

/// How many places of a country lie between two latitudes.
fn between(read: &ReadTxn, country: [u8; 2], south: i32, north: i32) -> Result<u64> {
    let south = store::latitude_prefix(country, south);
    let north = store::latitude_prefix(country, north);
    let mut found = 0;
    for entry in read.table(store::BY_LATITUDE)?.range(south..north) {
        entry?;
        found += 1;
    }
    Ok(found)
}

/// The nearest place and its distance: looks in the nine cells around, of ever larger size, until
/// nothing outside of them can be nearer.
fn nearest(read: &ReadTxn, lat: i32, lon: i32) -> Result<(Place, f64)> {
    let places = read.table(store::PLACES)?;
    let cells = read.table(store::BY_CELL)?;
    let mut best: Option<(Place, f64)> = None;
    for level in (2..=10).rev() {
        let all = || globe::Around { cells: vec![(0, u64::MAX)], sure_km: f64::INFINITY };
        let around = if level < 3 { all() } else { globe::around(lat, lon, level) };
        for (first, last) in around.cells {
            let first = first.to_be_bytes().to_vec();
            let last = [&last.to_be_bytes()[..], &[u8::MAX; 4]].concat();
            for entry in cells.range(first..=last) {
                let id = store::id_of(entry?.0)?;
                let record = places.get(id.to_be_bytes())?;
                let place = store::decode(id, record.context("an index entry without a record")?)?;
                let km = globe::distance_km((lat, lon), (place.lat, place.lon));
                if best.as_ref().is_none_or(|(_, so_far)| km < *so_far) {
                    best = Some((place, km));
                }
            }
        }
        if best.as_ref().is_some_and(|(_, km)| *km <= around.sure_km) {
            break;
        }
    }
    best.context("the store has no places")
}

/// Many queries of one kind.
struct Measured {
    kind: &'static str,
    queries: u64,
    found: u64,
    time: Duration,
}

impl Measured {
    fn each(&self) -> Duration {
        Duration::from_nanos((self.time.as_nanos() / u128::from(self.queries.max(1))) as u64)
    }

    fn row(&self) -> [String; 4] {
        let each = self.found as f64 / self.queries.max(1) as f64;
        let whole = self.found.is_multiple_of(self.queries.max(1));
        let each = if whole { report::count(each as u64) } else { format!("{each:.1}") };
        [self.kind.to_owned(), report::count(self.queries), each, report::time(self.each())]
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "kind": self.kind,
            "queries": self.queries,
            "records": self.found,
            "nanoseconds_each": self.each().as_nanos() as u64,
        })
    }
}

fn measure(
    kind: &'static str,
    most: u64,
    mut query: impl FnMut() -> Result<u64>,
) -> Result<Measured> {
    let begun = Instant::now();
    let (mut queries, mut found) = (0, 0);
    while queries < most && begun.elapsed() < LIMIT {
        // In small lots, so that looking at the clock does not count.
        for _ in 0..64 {
            found += query()?;
        }
        queries += 64;
    }
    Ok(Measured { kind, queries, found, time: begun.elapsed() })
}

/// The second step.
pub(crate) fn run(env: &Env, data: &[Place], seed: u64, report: &mut Report) -> Result<()> {
    report.heading("2  Ask")?;
    let read = env.read()?;
    examples(&read, data, report)?;

    let begun = Instant::now();
    let verified = verify(&read, data, seed)?;
    let verified_in = begun.elapsed();

    let all = measure_all(&read, data, seed)?;
    report.line("")?;
    let rows: Vec<_> = all.iter().map(Measured::row).collect();
    report.table(["random queries", "number", "records each", "time each"], &rows, 3)?;
    report.line(format!(
        "  {} answers compared with the data set in memory in {}: none differs",
        report::count(verified),
        report::time(verified_in)
    ))?;
    let kinds: Vec<_> = all.iter().map(Measured::json).collect();
    report.record("queries", json!({ "verified": verified, "wrong": 0, "kinds": kinds }));
    Ok(())
}

fn examples(read: &ReadTxn, data: &[Place], report: &Report) -> Result<()> {
    let place = &data[data.len() / 2];
    let found = store::place(read, place.id)?;
    let describe = |place: &Place| format!("{} ({})", place.name, place.country());
    report.line(format!("  number {}: {}, {}", place.id, describe(&found), found.position()))?;

    let found = named(read, "Zw")?;
    let shown: Vec<_> = found.iter().take(4).map(describe).collect();
    report.line(format!("  names with Zw...: {} places; {}", found.len(), shown.join(", ")))?;

    let found = northernmost(read, *b"NO", 3)?;
    let shown: Vec<_> = found.iter().map(|p| format!("{} {}", p.name, p.position())).collect();
    report.line(format!("  northernmost of Norway: {}", shown.join(", ")))?;
    let south = between(read, *b"CL", -9_000_000, -5_000_000)?;
    report.line(format!("  in Chile, south of 50° S: {south} places"))?;

    for (sight, lat, lon) in SIGHTS {
        let (place, km) = nearest(read, lat, lon)?;
        report.line(format!("  nearest to {sight}: {}, {km:.1} km", describe(&place)))?;
    }
    Ok(())
}

/// Start of a random place's name: three letters, in lower case.
fn some_prefix(rng: &mut fastrand::Rng, data: &[Place]) -> String {
    let place = &data[rng.usize(..data.len())];
    place.name.to_lowercase().chars().take(3).collect()
}

/// A position some way off a random place.
fn some_position(rng: &mut fastrand::Rng, data: &[Place]) -> (i32, i32) {
    let place = &data[rng.usize(..data.len())];
    let mut near =
        |value: i32, limit: i32| (value + rng.i32(-30_000..=30_000)).clamp(-limit, limit);
    (near(place.lat, 9_000_000), near(place.lon, 18_000_000))
}

/// Compares answers with the data set in memory; gives their number.
fn verify(read: &ReadTxn, data: &[Place], seed: u64) -> Result<u64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut verified = 0;
    for place in data {
        let found = store::place(read, place.id)?;
        ensure!(found == *place, "number {} gives {found:?}, not {place:?}", place.id);
        verified += 1;
    }
    for _ in 0..20 {
        let prefix = some_prefix(&mut rng, data);
        let found = named(read, &prefix)?;
        let wanted = data.iter().filter(|p| p.name.to_lowercase().starts_with(&prefix)).count();
        let fits = found.iter().all(|p| p.name.to_lowercase().starts_with(&prefix));
        ensure!(fits && found.len() == wanted, "names with {prefix:?}: {wanted} places are wanted");
        verified += 1;
    }
    for _ in 0..20 {
        let country = data[rng.usize(..data.len())].country;
        let mut wanted: Vec<_> = data.iter().filter(|p| p.country == country).collect();
        wanted.sort_by_key(|p| (-p.lat, std::cmp::Reverse(p.id)));
        let (lat, count) = (wanted[rng.usize(..wanted.len())].lat, wanted.len().min(10));
        let found = northernmost(read, country, count)?;
        ensure!(found.iter().eq(wanted.iter().take(count).copied()), "the order is wrong");
        let south_of = wanted.iter().filter(|p| p.lat < lat).count() as u64;
        ensure!(between(read, country, -9_000_000, lat)? == south_of, "the range is wrong");
        verified += 2;
    }
    let sights = SIGHTS.map(|(_, lat, lon)| (lat, lon));
    let near: Vec<_> = (0..20).map(|_| some_position(&mut rng, data)).collect();
    for at in near.into_iter().chain(sights) {
        let (_, km) = nearest(read, at.0, at.1)?;
        let all = data.iter().map(|p| globe::distance_km(at, (p.lat, p.lon)));
        ensure!(all.fold(f64::INFINITY, f64::min) == km, "a place is nearer to {at:?}");
        verified += 1;
    }
    Ok(verified)
}

fn measure_all(read: &ReadTxn, data: &[Place], seed: u64) -> Result<Vec<Measured>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let places = read.table(store::PLACES)?;
    let mut sum = 0;
    let last = data.len() as u32;
    let point = measure("record by number", 1_000_000, || {
        let id = rng.u32(1..=last);
        let record = places.get(id.to_be_bytes())?.context("a record is missing")?;
        sum += u64::from(store::visits_of(record)?);
        Ok(1)
    })?;
    ensure!(sum == 0, "{sum} visits were counted before there were any");

    let prefixes: Vec<_> = (0..1000).map(|_| some_prefix(&mut rng, data)).collect();
    let prefix = measure("names with a prefix of 3 letters", 20_000, || {
        let prefix = &prefixes[rng.usize(..prefixes.len())];
        Ok(named(read, prefix)?.len() as u64)
    })?;
    let range = measure("10 northernmost of a country", 50_000, || {
        let country = data[rng.usize(..data.len())].country;
        Ok(northernmost(read, country, 10)?.len() as u64)
    })?;
    let near = measure("place nearest to a position", 50_000, || {
        let (lat, lon) = some_position(&mut rng, data);
        nearest(read, lat, lon).map(|_| 1)
    })?;
    let mut scanned = 0;
    let begun = Instant::now();
    for record in places.iter() {
        scanned += u64::from(!record?.1.is_empty());
    }
    ensure!(scanned == data.len() as u64, "the scan found {scanned} records");
    let scan = Measured {
        kind: "all records in order",
        queries: 1,
        found: scanned,
        time: begun.elapsed(),
    };
    Ok(vec![point, prefix, range, near, scan])
}
