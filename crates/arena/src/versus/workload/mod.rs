//! The workloads, one file each, and the list of figures made of them.

mod begin;
mod crud;
mod extents;
mod get;
mod identifiers;
mod load;
mod scan;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::keys::{KEY_MAX, Kind, scatter, value};
use crate::versus::Config;
use crate::versus::duel::Figure;
use crate::versus::engine::{Engine, Mode, Settings, Writer};

/// Groups of figures, for `--only`.
pub(crate) const NAMES: &[&str] = &[
    "get", "int", "url", "scan", "load", "sorted", "begin", "sync", "sync8", "extents", "nosync",
    "lazy", "ids",
];

/// Where a workload reports.
type Sink<'s> = &'s mut dyn FnMut(Figure);

/// Runs what the configuration wants.
pub(crate) fn run(config: &Config, sink: Sink<'_>) {
    get::run(config, sink);
    load::run(config, sink);
    begin::run(config, sink);
    crud::run(config, sink);
    extents::run(config, sink);
    identifiers::run(config, sink);
}

const NOSYNC: Settings = Settings { mode: Mode::NoSync, write_map: false };
const NOSYNC_MAP: Settings = Settings { mode: Mode::NoSync, write_map: true };
const LAZY: Settings = Settings { mode: Mode::Lazy, write_map: false };
const SYNC: Settings = Settings { mode: Mode::Sync, write_map: false };
const SYNC_MAP: Settings = Settings { mode: Mode::Sync, write_map: true };

/// A directory of its own, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new(config: &Config) -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = config.dir.join(number.to_string());
        std::fs::create_dir_all(&path).expect("create a directory");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An engine in a place of its own. The engine goes first.
struct Housed<E> {
    engine: E,
    _place: Place,
}

impl<E: Engine> Housed<E> {
    fn new(config: &Config, settings: Settings) -> Housed<E> {
        let place = Place::new(config);
        Housed { engine: E::create(&place.0, settings), _place: place }
    }

    /// With `records` records of serial numbers 0.., put in the order of the numbers.
    fn loaded(config: &Config, settings: Settings, kind: Kind, records: u64) -> Housed<E> {
        let housed = Housed::<E>::new(config, settings);
        load::fill(&housed.engine, kind, 0..records, 1000);
        housed
    }
}

/// Puts the first version of record `serial`.
#[inline]
fn put_new(writer: &mut impl Writer, kind: Kind, serial: u64) {
    let mut buffer = [0; KEY_MAX];
    writer.put(kind.key(serial, &mut buffer), &value(serial, 0));
}

/// A reproducible, scattered sample of serial numbers below `bound`.
fn sample(bound: u64, count: u64, seed: u64) -> impl Iterator<Item = u64> {
    (0..count)
        .map(move |i| ((u128::from(scatter(i ^ seed << 32)) * u128::from(bound)) >> 64) as u64)
}
