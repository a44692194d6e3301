//! `zubilo map`: the file as a picture. Each cell stands for some neighbouring pages and is coloured by
//! what they are, by their table, by how full they are or by their age.

mod cells;
mod html;
mod screen;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use zubilo::Env;

use crate::encoding::{escape, to_json};
use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt;
use crate::opening::ReadArgs;
use crate::output::{Out, Progress, say, to_stderr};
use crate::prepared;

use self::cells::{Cell, Kind, Map};

/// Options of `map`.
#[derive(Args, Debug)]
pub(crate) struct MapArgs {
    #[command(flatten)]
    pub(crate) store: ReadArgs,
    /// What the colours mean
    #[arg(long, value_enum, default_value = "kind")]
    by: By,
    /// Write a page for a browser, complete in itself, whose cells show more under the pointer
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Cells in a line [default: what the terminal has room for; in a browser 96]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(8..=500))]
    width: Option<u16>,
    /// Lines of cells at most [default: what the terminal has room for; in a browser 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    height: Option<u16>,
    /// Colours also where no terminal is, or never
    #[arg(long, value_enum, default_value = "auto")]
    color: Color,
}

/// What a cell's colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// What the pages are
    Kind,
    /// Whose they are
    Table,
    /// How much of them is in use
    Fill,
    /// When they were written: the newest are the brightest
    Age,
    /// How much of them is in memory: asked before the map looks at the pages, which brings some there
    Residency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

/// Draws the map.
pub(crate) fn run(args: &MapArgs) -> Done {
    if args.html.is_some() && args.store.json {
        return Err(Failure::usage("map", "--html and --json are two different answers"));
    }
    let env = args.store.open_to_report()?;
    interrupt::catch()?;
    let map = draw(&env)?;
    let path = args.store.store.display().to_string();
    let (prepared, note) = prepared::note(&env);
    if let Some(file) = &args.html {
        let cells = map.cells(usize::from(args.width.unwrap_or(96)), rows(args, 64));
        let page = html::page(&map, &cells, usize::from(args.width.unwrap_or(96)), args.by, &path);
        let what = || format!("write {}", file.display());
        std::fs::write(file, page).map_err(|e| Failure::io(what(), &e))?;
        say(false, &Value::Null, &format!("{} cells drawn into {}", cells.len(), file.display()))?;
    } else if args.store.json {
        let cells = map.cells(usize::from(args.width.unwrap_or(96)), rows(args, 64));
        let mut out = Out::new();
        let mut value = to_value(&map, &cells, &path);
        value["prepared"] = prepared;
        out.json(&value)?;
        out.finish()?;
    } else {
        on_terminal(args, &map, &path)?;
    }
    if let Some(note) = note {
        to_stderr(&format!("zubilo: map: its pages look free: {note}"));
    }
    if map.problems > 0 {
        to_stderr(&format!(
            "zubilo: map: {} problems were met; `zubilo chk` lists them",
            map.problems
        ));
        return Ok(Code::Damaged);
    }
    Ok(Code::Fine)
}

fn rows(args: &MapArgs, usual: u16) -> usize {
    usize::from(args.height.unwrap_or(usual))
}

fn draw(env: &Env) -> Done<Map> {
    let progress = Progress::records("looking at pages", 0);
    let info = env.info().doing("read the figures")?;
    let mut map = Map::new(info.page_size as u64, info.newest.0);
    // First: the walk reads pages.
    env.residency(&mut |page, resident| map.set_resident(page.0, resident))
        .doing("ask what is in memory")?;
    let walked = env.walk_pages(&mut |visit| {
        map.add(visit);
        progress.set(visit.page.0);
        !interrupt::came()
    });
    let report = walked.doing("look at the pages")?;
    map.end(report.pages, info.file_len, report.problems.len());
    Ok(map)
}

fn on_terminal(args: &MapArgs, map: &Map, path: &str) -> Done<()> {
    let is_terminal = io::stdout().is_terminal();
    let (columns, lines) = match ratatui::crossterm::terminal::size() {
        Ok(size) if is_terminal => size,
        _ => (80, 24),
    };
    let width = usize::from(args.width.unwrap_or(columns.clamp(8, 500)));
    // Room for head and legend.
    let height = rows(args, lines.saturating_sub(8).clamp(4, 500));
    let cells = map.cells(width, height);
    let colours = match args.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
    };
    let screen = screen::render(map, &cells, width, args.by, path);
    let mut out = Out::new();
    out.bytes(screen::text(&screen, colours).as_bytes())?;
    out.finish()
}

fn to_value(map: &Map, cells: &[Cell], path: &str) -> Value {
    let kinds = |pages: &[u64; Kind::COUNT]| {
        let named = Kind::ALL.iter().zip(pages).filter(|(_, pages)| **pages > 0);
        named.map(|(kind, pages)| (kind.name().to_string(), Value::from(*pages))).collect()
    };
    let cell = |cell: &Cell| {
        json!({
            "first": cell.first,
            "pages": cell.pages,
            "kinds": Value::Object(kinds(&cell.kinds)),
            "fill": cell.fill(map.page_size),
            "newest": cell.newest,
            "resident": cell.resident,
            "held_for": cell.held.iter().map(|(txn, pages)| json!([txn, pages])).collect::<Vec<_>>(),
            "tables": cell.tables.iter()
                .map(|(at, pages)| json!([to_json(map.table(*at)), pages])).collect::<Vec<_>>(),
        })
    };
    json!({
        "path": path,
        "page_size": map.page_size,
        "pages": map.pages(),
        "kinds": Value::Object(kinds(&map.totals())),
        "tables": map.tables().iter().map(|name| escape(name).into_owned()).collect::<Vec<_>>(),
        "cells": cells.iter().map(cell).collect::<Vec<_>>(),
    })
}
