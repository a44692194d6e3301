//! `zubilo stat`: figures of the store, its readers and its tables.

use clap::Args;
use serde_json::{Value, json};
use zubilo::{EnvInfo, SpaceInfo};

use crate::encoding::hex;
use crate::failure::{Code, Doing, Done};
use crate::opening::{ReadArgs, untrusted_text};
use crate::output::{Out, count, pairs, size, table};
use crate::prepared;
use crate::tables::{self, Named};

/// Options of `stat`.
#[derive(Args, Debug)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
}

/// What is shown.
struct Figures {
    path: String,
    info: EnvInfo,
    space: SpaceInfo,
    tables: Vec<Named>,
    /// What waits for its decision, as JSON and as text.
    prepared: (Value, Option<String>),
}

/// Prints the figures.
pub(crate) fn run(args: &StatArgs) -> Done {
    let env = args.store.open_to_report()?;
    // Before this command reads: it is not one of the readers that are of interest.
    let info = env.info().doing("read the figures")?;
    let space = env.space().doing("read the free-space log")?;
    let read = env.read().doing("begin to read")?;
    let path = args.store.store.display().to_string();
    let (tables, prepared) = (tables::all(&read)?, prepared::note(&env));
    let figures = Figures { path, info, space, tables, prepared };
    let mut out = Out::new();
    if args.store.json {
        out.json(&figures.to_value())?;
    } else {
        out.line(&figures.show())?;
    }
    out.finish()?;
    Ok(Code::Fine)
}

impl Figures {
    fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.info.page_size as u64)
    }

    /// After the last page ever used.
    fn tail(&self) -> u64 {
        self.info.file_len.saturating_sub(self.bytes(self.space.pages))
    }

    fn unflushed(&self) -> u64 {
        self.info.newest.0.saturating_sub(self.info.steady.0)
    }

    fn to_value(&self) -> Value {
        let (info, space) = (&self.info, &self.space);
        let geometry = &info.geometry;
        let readers = info
            .readers
            .iter()
            .map(|r| json!({ "pid": r.pid, "thread": r.thread, "txn": r.txn.0, "lag": r.lag }));
        json!({
            "path": self.path,
            "uuid": hex(&info.uuid),
            "page_size": info.page_size,
            "encrypted": info.is_encrypted,
            "newest": info.newest.0,
            "steady": info.steady.0,
            "unflushed_commits": self.unflushed(),
            "untrusted": info.untrusted.map(|txn| txn.0),
            "prepared": self.prepared.0,
            "file_bytes": info.file_len,
            "used_bytes": self.bytes(space.pages),
            "free_bytes": self.bytes(space.free_pages),
            "retired_bytes": self.bytes(space.retired_pages),
            "free_space_log_bytes": self.bytes(space.free_space_log_pages),
            "redo_log_bytes": self.bytes(space.redo_log_pages),
            "tail_bytes": self.tail(),
            "geometry": {
                "lower": geometry.lower,
                "upper": (geometry.upper != u64::MAX).then_some(geometry.upper),
                "growth": geometry.growth,
                "shrink": (geometry.shrink != u64::MAX).then_some(geometry.shrink),
            },
            "max_readers": info.max_readers,
            "readers": readers.collect::<Vec<_>>(),
            "tables": self.tables.iter()
                .map(|t| tables::to_value(t, info.page_size)).collect::<Vec<_>>(),
        })
    }

    fn logs(&self) -> String {
        let free_space = size(self.bytes(self.space.free_space_log_pages));
        match self.space.redo_log_pages {
            0 => free_space,
            pages => format!("{free_space}; redo log {}", size(self.bytes(pages))),
        }
    }

    fn show(&self) -> String {
        let (info, space) = (&self.info, &self.space);
        let durable = match self.unflushed() {
            0 => "the newest commit is on disk".to_string(),
            1 => "the newest commit is not known to be on disk".to_string(),
            n => format!("the newest {} commits are not known to be on disk", count(n)),
        };
        let free = self.bytes(space.free_pages);
        let mut parts = vec![pairs(&[
            ("store", self.path.clone()),
            ("identity", hex(&info.uuid)),
            ("page size", size(info.page_size as u64)),
            ("encrypted", if info.is_encrypted { "yes" } else { "no" }.into()),
            ("newest commit", info.newest.to_string()),
            ("durable", durable),
            ("file", size(info.file_len)),
            ("in use", size(self.bytes(space.pages).saturating_sub(free))),
            ("free inside", size(free)),
            ("free at the end", size(self.tail())),
            (
                "held back",
                format!("{} by readers or the last flush", size(self.bytes(space.retired_pages))),
            ),
            ("free-space log", self.logs()),
            ("geometry", self.geometry()),
            ("readers", format!("{} of {}", info.readers.len(), info.max_readers)),
        ])];
        if !info.readers.is_empty() {
            let mut readers = table(&["process", "thread", "snapshot", "commits behind"], 0);
            for r in &info.readers {
                let row =
                    [r.pid.to_string(), r.thread.to_string(), r.txn.to_string(), count(r.lag)];
                readers.add_row(row);
            }
            parts.push(readers.trim_fmt());
        }
        parts.extend(info.untrusted.map(|txn| format!("note: {}", untrusted_text(txn))));
        parts.extend(self.prepared.1.iter().map(|what| format!("note: {what}")));
        match self.tables.is_empty() {
            true => parts.push("no tables".into()),
            false => parts.push(tables::show(&self.tables, info.page_size)),
        }
        parts.join("\n\n")
    }

    fn geometry(&self) -> String {
        let g = &self.info.geometry;
        let or = |bytes: u64, free: u64, word: &str| match bytes == free {
            true => word.to_string(),
            false => size(bytes),
        };
        let shrink = match g.shrink {
            0 => "by itself".to_string(),
            u64::MAX => "never".to_string(),
            bytes => format!("at {} free", size(bytes)),
        };
        format!(
            "{} to {}, grows {}, shrinks {shrink}",
            size(g.lower),
            or(g.upper, u64::MAX, "any size"),
            or(g.growth, 0, "by itself"),
        )
    }
}
