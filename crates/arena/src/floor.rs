//! What the system asks for a durable write, whoever does it: the time of bare writes with a flush
//! into a file whose blocks are all written. No engine that changes so many pages, or appends so
//! many bytes, can commit faster on this disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use comfy_table::{Table, presets};

use crate::clock::cpu_now;
use crate::keys::SEED;
use crate::stats::quantiles;

const PAGE: usize = 4096;
/// Pages of the file.
const PAGES: u64 = 65_536;
/// Pages at the front for what is written again and again.
const FRONT: u64 = 32;
/// Writes of a kind before it is the next one's turn.
const TURN: usize = 20;

/// Options of the measurement.
#[derive(Args)]
pub(crate) struct Config {
    /// Writes of each kind.
    #[arg(long, default_value_t = 600)]
    writes: usize,
    /// The file system that is measured.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

/// A way to make something durable.
struct Kind {
    name: &'static str,
    run: fn(&mut Disk) -> io::Result<()>,
}

const KINDS: [Kind; 6] = [
    Kind { name: "600 bytes after the last", run: |d| d.append(600) },
    Kind { name: "1 page", run: |d| d.front() },
    Kind { name: "4 adjacent pages, 1 elsewhere", run: |d| d.run(4).and_then(|()| d.front()) },
    Kind { name: "12 adjacent pages", run: |d| d.run(12) },
    Kind { name: "11 adjacent pages, 1 elsewhere", run: |d| d.run(11).and_then(|()| d.front()) },
    Kind {
        name: "5 and 6 adjacent pages, 1 elsewhere",
        run: |d| d.run(5).and_then(|()| d.run(6)).and_then(|()| d.front()),
    },
];

struct Disk {
    file: File,
    bytes: Vec<u8>,
    end: u64,
    random: u64,
}

impl Disk {
    fn new(config: &Config) -> io::Result<Disk> {
        let path = config.dir.join(format!("arena-floor-{}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        // Without a name it goes with the process, however that ends.
        std::fs::remove_file(&path)?;
        let bytes = vec![7; 16 * PAGE];
        for at in (0..PAGES * PAGE as u64).step_by(4 * PAGE) {
            file.write_all_at(&bytes[..4 * PAGE], at)?;
        }
        file.sync_all()?;
        Ok(Disk { file, bytes, end: FRONT * PAGE as u64, random: SEED })
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    fn append(&mut self, len: usize) -> io::Result<()> {
        self.file.write_all_at(&self.bytes[..len], self.end)?;
        self.end += len as u64;
        Ok(())
    }

    fn front(&mut self) -> io::Result<()> {
        let page = self.below(FRONT);
        self.file.write_all_at(&self.bytes[..PAGE], page * PAGE as u64)
    }

    fn run(&mut self, pages: usize) -> io::Result<()> {
        let first = PAGES / 2 + self.below(PAGES / 2 - pages as u64);
        self.file.write_all_at(&self.bytes[..pages * PAGE], first * PAGE as u64)
    }
}

/// Measures and prints.
pub(crate) fn run(config: &Config) -> io::Result<()> {
    let mut disk = Disk::new(config)?;
    let mut wall = KINDS.map(|_| Vec::with_capacity(config.writes));
    let mut cpu = KINDS.map(|_| 0.0);
    while wall[0].len() < config.writes.max(1) {
        for (kind, (wall, cpu)) in KINDS.iter().zip(wall.iter_mut().zip(&mut cpu)) {
            let before = cpu_now();
            for _ in 0..TURN {
                let start = Instant::now();
                (kind.run)(&mut disk)?;
                disk.file.sync_data()?;
                wall.push(start.elapsed().as_secs_f64() * 1e6);
            }
            *cpu += (cpu_now() - before) * 1e6;
        }
    }
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["write and fdatasync, us", "p10", "median", "p90", "CPU"]);
    for (kind, (wall, cpu)) in KINDS.iter().zip(wall.iter().zip(cpu)) {
        let [low, median, high] = quantiles(wall, [0.1, 0.5, 0.9]);
        let figure = |us: f64| format!("{us:.0}");
        let each = cpu / wall.len() as f64;
        table.add_row([
            kind.name.to_owned(),
            figure(low),
            figure(median),
            figure(high),
            figure(each),
        ]);
    }
    println!("{table}");
    Ok(())
}
