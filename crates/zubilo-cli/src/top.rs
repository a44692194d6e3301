//! `zubilo top`: a live view of a store: commits, who reads, what space is used for, which tables grow.
//!
//! It sees what any process that has the store open can see. It holds no snapshot between two looks.

mod screen;

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use zubilo::{Env, EnvCounters, ReaderInfo};

use crate::encoding::escape;
use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt;
use crate::opening::ReadArgs;
use crate::output::Out;

/// Options of `top`.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// Seconds between two looks
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// End after so many looks
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Looks that are remembered.
const HISTORY: usize = 512;
/// How long keys are waited for before a request to end is looked for.
const GLANCE: Duration = Duration::from_millis(200);
/// Tables that are looked at each time.
const TABLES: usize = 200;

/// A table at one moment.
#[derive(Clone, Debug, PartialEq)]
struct TableNow {
    name: String,
    records: u64,
    bytes: u64,
    /// Change of records a second, since the last look.
    growth: f64,
}

/// A reader at one moment.
#[derive(Clone, Debug)]
struct ReaderNow {
    info: ReaderInfo,
    /// The name of its program.
    program: String,
    /// Bytes that its snapshot holds back by itself.
    held: u64,
}

/// The store at one moment.
#[derive(Clone, Debug)]
struct Sample {
    newest: u64,
    steady: u64,
    page_size: u64,
    file: u64,
    used: u64,
    free: u64,
    held: u64,
    free_space_log: u64,
    redo_log: u64,
    /// Held back by what is not on disk yet.
    held_by_flush: u64,
    readers: Vec<ReaderNow>,
    /// What all programs have done so far.
    done: EnvCounters,
    max_readers: u32,
    tables: Vec<TableNow>,
    untrusted: Option<u64>,
}

/// All that is shown.
struct View {
    path: String,
    now: Sample,
    /// Commits a second, the latest first.
    commits: VecDeque<f64>,
    /// Bytes that they wrote a second.
    bytes: VecDeque<f64>,
    /// What was done between the last two looks.
    since: EnvCounters,
    interval: Duration,
    paused: bool,
    /// First reader that is shown: the one that is chosen.
    scroll: usize,
    /// A reader to be expired.
    wish: Option<ReaderInfo>,
    /// What came of the last wish.
    outcome: String,
}

/// Shows the store until a key or Ctrl-C ends it.
pub(crate) fn run(args: &TopArgs) -> Done {
    if !(0.05..=3600.0).contains(&args.interval) {
        return Err(Failure::usage("read --interval", "0.05 to 3600 seconds it may be"));
    }
    let env = args.store.open_to_report()?;
    let mut view = View {
        path: args.store.store.display().to_string(),
        now: look(&env)?,
        commits: VecDeque::new(),
        bytes: VecDeque::new(),
        since: EnvCounters::default(),
        interval: Duration::from_secs_f64(args.interval),
        paused: false,
        scroll: 0,
        wish: None,
        outcome: String::new(),
    };
    if args.store.json {
        return as_lines(args, &env, &mut view);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("top", "it is drawn on a terminal, and this is none")
            .advise("--json prints a line for each look"));
    }
    // A request to end must find its way past the terminal's state, which is put back.
    interrupt::catch()?;
    let mut terminal = ratatui::try_init().map_err(|e| Failure::io("take the terminal", &e))?;
    let shown = show(args, &env, &mut view, &mut terminal);
    ratatui::restore();
    shown
}

/// A line of JSON for each look.
fn as_lines(args: &TopArgs, env: &Env, view: &mut View) -> Done {
    interrupt::catch()?;
    let mut left = args.count.unwrap_or(u64::MAX);
    loop {
        let mut out = Out::new();
        out.json(&view.to_value())?;
        out.finish()?;
        left -= 1;
        let end = Instant::now() + view.interval;
        while left > 0 && Instant::now() < end && !interrupt::came() {
            let rest = end.saturating_duration_since(Instant::now());
            std::thread::sleep(rest.min(Duration::from_millis(50)));
        }
        if left == 0 {
            return Ok(Code::Fine);
        }
        if interrupt::came() {
            return Ok(Code::Interrupted);
        }
        view.step(look(env)?, view.interval);
    }
}

/// What the terminal has to say.
enum Keys {
    None,
    Came,
    /// There is no terminal any more.
    Gone,
}

/// Waits for keys. The library that reads them would look for ever at a terminal that is gone.
fn keys(wait: Duration) -> io::Result<Keys> {
    let input = io::stdin();
    let mut input = [PollFd::new(&input, PollFlags::IN)];
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    match poll(&mut input, Some(&wait)) {
        // Of a changed size, for example: it is drawn anew.
        Err(rustix::io::Errno::INTR) => return Ok(Keys::None),
        other => other?,
    };
    let happened = input[0].revents();
    Ok(match happened {
        _ if happened.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Keys::Gone,
        _ if happened.contains(PollFlags::IN) => Keys::Came,
        _ => Keys::None,
    })
}

fn show(
    args: &TopArgs,
    env: &Env,
    view: &mut View,
    terminal: &mut ratatui::DefaultTerminal,
) -> Done {
    let drawn = |e: io::Error| Failure::io("draw on the terminal", &e);
    let mut last = Instant::now();
    let mut left = args.count.unwrap_or(u64::MAX);
    loop {
        terminal.draw(|frame| screen::draw(frame, view)).map_err(drawn)?;
        let rest = view.interval.saturating_sub(last.elapsed());
        match keys(rest.min(GLANCE)).map_err(drawn)? {
            Keys::Gone => return Ok(Code::Interrupted),
            Keys::Came => {
                while event::poll(Duration::ZERO).map_err(drawn)? {
                    if let Event::Key(key) = event::read().map_err(drawn)?
                        && key.kind == KeyEventKind::Press
                        && !view.key(key)
                    {
                        return Ok(Code::Fine);
                    }
                    view.act(env);
                }
                continue;
            }
            Keys::None => {}
        }
        if interrupt::came() {
            return Ok(Code::Interrupted);
        }
        if last.elapsed() < view.interval {
            continue;
        }
        let passed = last.elapsed();
        last = Instant::now();
        if !view.paused {
            view.step(look(env)?, passed);
        }
        left -= 1;
        if left == 0 {
            return Ok(Code::Fine);
        }
    }
}

/// Looks at the store.
fn look(env: &Env) -> Done<Sample> {
    let info = env.info().doing("read the figures")?;
    let space = env.space().doing("read the free-space log")?;
    let read = env.read().doing("begin to read")?;
    let page_size = info.page_size as u64;
    let mut tables = Vec::new();
    for name in read.tables().doing("list the tables")?.into_iter().take(TABLES) {
        let what = format!("open the table \"{}\"", escape(&name));
        let stats = read.table_stats(&name).doing(&what)?;
        let pages = stats.leaf_pages + stats.branch_pages + stats.run_pages;
        tables.push(TableNow {
            name: escape(&name).into_owned(),
            records: stats.entries,
            bytes: pages * page_size,
            growth: 0.0,
        });
    }
    let held_by = |txn| {
        let held = space.held_back.iter().filter(|held| held.txn == txn);
        held.map(|held| held.pages * page_size).sum::<u64>()
    };
    let is_read = |txn| info.readers.iter().any(|reader| reader.txn == txn);
    let by_flush = space.held_back.iter().filter(|held| !is_read(held.txn));
    let held_by_flush = by_flush.map(|held| held.pages * page_size).sum();
    let with_held = |info: &ReaderInfo| ReaderNow {
        program: crate::readers::program(info.pid).unwrap_or_else(|| "?".into()),
        held: held_by(info.txn),
        info: info.clone(),
    };
    let mut readers: Vec<_> = info.readers.iter().map(with_held).collect();
    readers.sort_by_key(|reader| reader.info.txn);
    Ok(Sample {
        newest: info.newest.0,
        steady: info.steady.0,
        page_size,
        file: info.file_len,
        used: space.pages.saturating_sub(space.free_pages + space.retired_pages) * page_size,
        free: space.free_pages * page_size,
        held: space.retired_pages * page_size,
        free_space_log: space.free_space_log_pages * page_size,
        redo_log: space.redo_log_pages * page_size,
        held_by_flush,
        readers,
        done: env.store_counters(),
        max_readers: info.max_readers,
        tables,
        untrusted: info.untrusted.map(|txn| txn.0),
    })
}

impl Sample {
    /// Never used, at the end of the file.
    fn tail(&self) -> u64 {
        self.file.saturating_sub(self.used + self.free + self.held)
    }
}

impl View {
    /// Takes in what was seen after some time.
    fn step(&mut self, mut next: Sample, passed: Duration) {
        let seconds = passed.as_secs_f64().max(1e-3);
        let commits = next.newest.saturating_sub(self.now.newest) as f64 / seconds;
        self.commits.push_front(commits);
        self.commits.truncate(HISTORY);
        self.since = next.done.since(&self.now.done);
        self.bytes.push_front(self.since.bytes_written as f64 / seconds);
        self.bytes.truncate(HISTORY);
        for table in &mut next.tables {
            if let Some(before) = self.now.tables.iter().find(|t| t.name == table.name) {
                table.growth = (table.records as f64 - before.records as f64) / seconds;
            }
        }
        self.now = next;
        self.scroll = self.scroll.min(self.now.readers.len().saturating_sub(1));
    }

    /// Does what a key asks for; false to end.
    fn key(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('+') => {
                self.interval = (self.interval / 2).max(Duration::from_millis(50))
            }
            KeyCode::Char('-') => {
                self.interval = (self.interval * 2).min(Duration::from_secs(3600))
            }
            KeyCode::Down => {
                self.scroll = (self.scroll + 1).min(self.now.readers.len().saturating_sub(1));
            }
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Char('x') => {
                let chosen = self.now.readers.get(self.scroll);
                self.wish = chosen.map(|reader| reader.info.clone());
            }
            _ => {}
        }
        true
    }

    /// Does what a key has asked for and the view cannot do.
    fn act(&mut self, env: &Env) {
        let Some(reader) = self.wish.take() else { return };
        let who = format!("reader of process {}, thread {}", reader.pid, reader.thread);
        self.outcome = match env.expire_reader(&reader) {
            Ok(true) => format!("{who} expired"),
            Ok(false) => format!("{who} is not parked, so it stays"),
            Err(error) => format!("{who}: {error}"),
        };
    }

    /// What each part of a commit took since the last look, in nanoseconds on the average; `None` where nobody
    /// committed, or nobody can see what others do.
    fn parts(&self) -> Option<[(&'static str, u64); 6]> {
        let done = &self.since;
        let each = |ns: u64| ns.checked_div(done.commits);
        Some([
            ("prepare", each(done.commit_prepare_ns)?),
            ("layout", each(done.commit_layout_ns)?),
            ("write", each(done.commit_write_ns)?),
            ("log", each(done.commit_log_ns)?),
            ("flush", each(done.commit_flush_ns)?),
            ("publish", each(done.commit_publish_ns)?),
        ])
    }

    fn commit_us(&self) -> Option<Value> {
        let parts = self.parts()?;
        Some(
            parts
                .into_iter()
                .map(|(name, ns)| (name.to_string(), json!(ns as f64 / 1e3)))
                .collect(),
        )
    }

    fn to_value(&self) -> Value {
        let now = &self.now;
        let reader = |reader: &ReaderNow| {
            let mut shown = crate::readers::to_value(&reader.info, reader.held);
            shown["program"] = json!(reader.program);
            shown
        };
        let table = |t: &TableNow| {
            json!({
                "name": t.name,
                "entries": t.records,
                "bytes": t.bytes,
                "entries_per_second": t.growth,
            })
        };
        json!({
            "newest": now.newest,
            "steady": now.steady,
            "commits_per_second": self.commits.front(),
            "bytes_per_second": self.bytes.front(),
            "commit_us": self.commit_us(),
            "file_bytes": now.file,
            "used_bytes": now.used,
            "free_bytes": now.free,
            "retired_bytes": now.held,
            "free_space_log_bytes": now.free_space_log,
            "redo_log_bytes": now.redo_log,
            "held_by_flush_bytes": now.held_by_flush,
            "tail_bytes": now.tail(),
            "max_readers": now.max_readers,
            "untrusted": now.untrusted,
            "readers": now.readers.iter().map(reader).collect::<Vec<_>>(),
            "tables": now.tables.iter().map(table).collect::<Vec<_>>(),
        })
    }
}
