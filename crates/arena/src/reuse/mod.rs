//! What the order in which free pages are reused means to a device with a write-back cache: the
//! newest first (LIFO), the oldest first (FIFO), and as Zubilo does it.
//!
//! LIFO and FIFO are compared on `model`, a copy-on-write tree of which only the pages count, so
//! that nothing else differs; Zubilo's own order comes from the writes of a real store. All go
//! through `cache`; what counts is the pages that the device has to write.

mod cache;
mod model;

use std::path::{Path, PathBuf};

use zubilo::{Durability, Env, Options};

use crate::keys::{KEY_MAX, Kind, scatter, value};
use crate::versus::engine::counting::{Counted, take_pages};
use cache::Cache;
use model::{Order, Store};

const PAGE: u64 = 4096;
/// Sizes of the cache, in MiB.
const CACHES: [u64; 2] = [128, 512];
/// Numbers of records of the published figures, and the factors for each cache.
const PUBLISHED: [(u64, [f64; 2]); 3] =
    [(74_088, [5.10, 29.31]), (3_100_000, [2.81, 4.48]), (130_000_000, [2.16, 2.84])];

/// What the command line asks for.
#[derive(clap::Args)]
pub(crate) struct Config {
    /// Transactions of 2 inserts, 1 update and 1 delete.
    #[arg(long, default_value_t = 200_000)]
    commits: u64,
    /// Free space in the store, in MiB: the oldest page comes up again after that much was written.
    #[arg(long, default_value_t = 1024)]
    free: u64,
    /// Stores of more records are modelled only.
    #[arg(long, default_value_t = 3_100_000)]
    real: u64,
    /// Numbers of records; those of the published figures if absent.
    #[arg(long, value_delimiter = ',')]
    records: Vec<u64>,
    /// Where the real store is made.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Pages that a device writes, for each of the caches.
struct Counter {
    caches: Vec<Cache>,
    pages: u64,
}

impl Counter {
    fn new() -> Counter {
        let pages = |mib: &u64| (mib << 20) / PAGE;
        Counter { caches: CACHES.iter().map(|mib| Cache::new(pages(mib))).collect(), pages: 0 }
    }

    fn write(&mut self, page: u64) {
        self.pages += 1;
        self.caches.iter_mut().for_each(|cache| cache.write(page));
    }

    fn written(&self) -> Vec<u64> {
        self.caches.iter().map(Cache::written).collect()
    }
}

/// Measures and prints a table in markdown.
pub(crate) fn run(config: &Config) -> Result<()> {
    println!(
        "{} commits of 2 inserts, 1 update, 1 delete at random; {} MiB free in the store\n",
        config.commits, config.free
    );
    println!(
        "| records | order | page writes | cache, MiB | written by the device | FIFO over it | published |"
    );
    println!("|---|---|---|---|---|---|---|");
    let sizes = match &config.records[..] {
        [] => PUBLISHED.map(|(records, _)| records).to_vec(),
        given => given.to_vec(),
    };
    for records in sizes {
        let [fifo, lifo] =
            [Order::Oldest, Order::Newest].map(|order| modelled(config, records, order));
        let mut rows = vec![("FIFO, model", &fifo), ("LIFO, model", &lifo)];
        let own = match records <= config.real {
            true => Some(measured(config, records)?),
            false => None,
        };
        rows.extend(own.as_ref().map(|own| ("Zubilo", own)));
        for (i, mib) in CACHES.iter().enumerate() {
            for (name, counter) in &rows {
                let written = counter.written()[i];
                let factor = fifo.written()[i] as f64 / written.max(1) as f64;
                let known = PUBLISHED.iter().find(|(n, _)| *n == records && *name == "LIFO, model");
                let known = known.map_or(String::new(), |(_, factors)| factors[i].to_string());
                println!(
                    "| {records} | {name} | {} | {mib} | {written} | {factor:.2} | {known} |",
                    counter.pages
                );
            }
        }
    }
    Ok(())
}

fn modelled(config: &Config, records: u64, order: Order) -> Counter {
    let mut store = Store::new(records, (config.free << 20) / PAGE, order);
    let mut counter = Counter::new();
    for _ in 0..config.commits {
        store.commit(|page| counter.write(page));
    }
    counter
}

/// The writes of a real store without flushes, with as much free space.
fn measured(config: &Config, records: u64) -> Result<Counter> {
    let folder = config.dir.join(format!("arena-reuse-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let counted = in_store(config, records, &folder.join("store"));
    std::fs::remove_dir_all(&folder)?;
    counted
}

fn in_store(config: &Config, records: u64, path: &Path) -> Result<Counter> {
    let (file, pages) = Counted::traced(path, PAGE);
    let options = Options::new().durability(Durability::NoSync);
    let env = Env::open_parts(Box::new(file), [1; 16], options)?;
    load(&env, records)?;
    make_room(&env, config.free << 20)?;
    take_pages(&pages);
    let mut counter = Counter::new();
    for commit in 0..config.commits {
        crud(&env, records, commit)?;
        for (offset, len) in take_pages(&pages) {
            (offset / PAGE..(offset + len).div_ceil(PAGE)).for_each(|page| counter.write(page));
        }
    }
    env.close()?;
    Ok(counter)
}

const TABLE: &str = "records";

fn load(env: &Env, records: u64) -> Result<()> {
    for first in (0..records).step_by(1000) {
        let mut write = env.write()?;
        let mut table = write.table_or_create(TABLE)?;
        for serial in first..(first + 1000).min(records) {
            table.put(Kind::Random16.key(serial, &mut [0; KEY_MAX]), value(serial, 0))?;
        }
        write.commit()?;
    }
    Ok(())
}

/// Leaves so much free space in the file: of values that were there for a while.
fn make_room(env: &Env, bytes: u64) -> Result<()> {
    const CHUNK: usize = 1 << 20;
    let chunk = vec![7; CHUNK];
    for i in 0..bytes / CHUNK as u64 {
        let mut write = env.write()?;
        write.table_or_create("room")?.put(i.to_be_bytes(), &chunk)?;
        write.commit()?;
    }
    let mut write = env.write()?;
    if bytes > 0 {
        write.drop_table("room")?;
    }
    write.commit()?;
    Ok(())
}

/// 2 inserts, 1 update, 1 delete. The oldest records go, so that their number stays.
fn crud(env: &Env, records: u64, commit: u64) -> Result<()> {
    let key = |serial: u64| Kind::Random16.key(serial, &mut [0; KEY_MAX]).to_vec();
    let mut write = env.write()?;
    let mut table = write.table(TABLE)?;
    for serial in [records + 2 * commit, records + 2 * commit + 1] {
        table.put(key(serial), value(serial, 0))?;
    }
    let alive = commit + 1 + scatter(commit) % records.saturating_sub(1).max(1);
    table.put(key(alive), value(alive, 1))?;
    table.delete(key(commit))?;
    write.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(dir: &Path) -> Config {
        Config { commits: 3000, free: 160, real: 5000, records: vec![5000], dir: dir.to_owned() }
    }

    #[test]
    fn the_newest_first_spares_the_device() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { commits: 20_000, ..config(dir.path()) };
        let [fifo, lifo] =
            [Order::Oldest, Order::Newest].map(|order| modelled(&config, 5000, order));
        assert_eq!(fifo.pages, lifo.pages, "the order changes places only");
        // 160 MiB go round through the smaller cache; what is rewritten newest first stays in it.
        assert!(fifo.written()[0] > 10 * lifo.written()[0], "{:?}", fifo.written());
        assert!(fifo.written()[1] < fifo.written()[0]);
    }

    #[test]
    fn a_real_store_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let counter = measured(&config(dir.path()), 5000).unwrap();
        assert!(counter.pages >= 3000 * 4, "{} pages", counter.pages);
        let written = counter.written();
        assert!(written[0] > 0 && written[0] <= counter.pages && written[1] <= written[0]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    }
}
