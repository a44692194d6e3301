//! What `top` draws: a function of what it knows, so that tests can look at it.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table};

use crate::output::{count, size};

use super::{ReaderNow, TableNow, View};

const DIM: Style = Style::new().fg(Color::DarkGray);
const HEAD: Style = Style::new().fg(Color::Reset).add_modifier(Modifier::BOLD);

/// Parts of the file and their colours.
const USED: Color = Color::Rgb(0, 114, 178);
const HELD: Color = Color::Rgb(230, 159, 0);
const FREE: Color = Color::Rgb(90, 90, 90);
const TAIL: Color = Color::Rgb(50, 50, 50);
/// Parts of a commit.
const PARTS: [Color; 6] = [
    Color::Rgb(86, 180, 233),
    Color::Rgb(0, 158, 115),
    Color::Rgb(240, 228, 66),
    Color::Rgb(204, 121, 167),
    Color::Rgb(213, 94, 0),
    Color::Rgb(150, 150, 150),
];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let readers = (view.now.readers.len().clamp(1, 8) + 3) as u16;
    let [head, commits, parts, space, who, tables, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(5),
        Constraint::Length(3),
        Constraint::Length(4),
        Constraint::Length(readers),
        Constraint::Min(4),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, view);
    let [commits, bytes] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(2).areas(commits);
    draw_history(frame, commits, "commits", &view.commits, rate);
    draw_history(frame, bytes, "written", &view.bytes, |bytes| size(bytes as u64));
    draw_parts(frame, parts, view);
    draw_space(frame, space, view);
    draw_readers(frame, who, view);
    draw_tables(frame, tables, view);
    let paused = if view.paused { "paused   " } else { "" };
    let seconds = view.interval.as_secs_f64();
    let outcome =
        if view.outcome.is_empty() { String::new() } else { format!("   {}", view.outcome) };
    let text =
        format!("{paused}q end   p pause   + - {seconds} s   up down choose   x expire{outcome}");
    frame.render_widget(Paragraph::new(text).style(DIM), keys);
}

fn titled(title: String) -> Block<'static> {
    Block::new().borders(Borders::TOP).border_style(DIM).title(Span::styled(title, HEAD))
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let now = &view.now;
    let durable = match now.newest.saturating_sub(now.steady) {
        0 => "all on disk".to_string(),
        1 => "the newest not known to be on disk".to_string(),
        n => format!("the newest {} not known to be on disk", count(n)),
    };
    let first = Line::from(vec![
        Span::styled(view.path.clone(), HEAD),
        Span::raw(format!("   pages of {}", size(now.page_size))),
    ]);
    let mut second = format!("commit {}, {durable}", now.newest);
    if let Some(txn) = now.untrusted {
        second.push_str(&format!("; holds a newer commit, {txn}, that is not trusted"));
    }
    frame.render_widget(Paragraph::new(vec![first, Line::raw(second)]), area);
}

/// "12.3": short for any rate.
fn rate(per_second: f64) -> String {
    match per_second {
        r if r.abs() >= 100.0 => count_signed(r),
        r => format!("{r:.1}"),
    }
}

fn count_signed(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(number.abs() as u64))
}

/// What there was a second, the latest at the right end.
fn draw_history(
    frame: &mut Frame<'_>,
    area: Rect,
    what: &str,
    history: &VecDeque<f64>,
    shown: impl Fn(f64) -> String,
) {
    let now = history.front().copied().unwrap_or(0.0);
    let most = history.iter().copied().fold(0.0, f64::max);
    let block = titled(format!(" {what} a second: {}, at most {} ", shown(now), shown(most)));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    // Tenths, so that slow ones are seen.
    let mut bars: Vec<u64> =
        history.iter().take(width).map(|r| (r * 10.0).round() as u64).collect();
    bars.resize(width, 0);
    bars.reverse();
    frame.render_widget(Sparkline::default().data(bars).style(Style::new().fg(USED)), inner);
}

/// Parts of something, named, with their sizes as `shown` and their colours.
fn draw_bar(
    frame: &mut Frame<'_>,
    area: Rect,
    parts: &[(&str, u64, Color)],
    all: u64,
    shown: impl Fn(u64) -> String,
) {
    let all = all.max(1);
    let width = u64::from(area.width);
    let (mut bar, mut legend) = (Vec::new(), Vec::new());
    let (mut sum, mut drawn) = (0, 0);
    for &(name, part, colour) in parts {
        sum += part;
        let end = sum.saturating_mul(width) / all;
        let cells = end.saturating_sub(drawn);
        bar.push(Span::styled("█".repeat(cells as usize), Style::new().fg(colour)));
        drawn += cells;
        legend.push(Span::styled("█ ", Style::new().fg(colour)));
        legend.push(Span::raw(format!("{name} {}   ", shown(part))));
    }
    frame.render_widget(Paragraph::new(vec![Line::from(bar), Line::from(legend)]), area);
}

/// "812 us", "1.3 ms".
fn time(ns: u64) -> String {
    match ns {
        0..100_000 => format!("{:.1} us", ns as f64 / 1e3),
        100_000..1_000_000 => format!("{:.0} us", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// Where the time of a commit goes.
fn draw_parts(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let parts = view.parts();
    let all: u64 = parts.iter().flatten().map(|(_, ns)| ns).sum();
    let title = match parts {
        Some(_) => format!(" a commit took {} ", time(all)),
        None => " nobody commits ".to_string(),
    };
    let block = titled(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if let Some(parts) = parts {
        let coloured = parts.iter().zip(PARTS).map(|(&(name, ns), colour)| (name, ns, colour));
        draw_bar(frame, inner, &coloured.collect::<Vec<_>>(), all, time);
    }
}

fn draw_space(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let now = &view.now;
    let mut title = format!(" space: {}", size(now.file));
    if now.redo_log > 0 {
        title.push_str(&format!(", {} of it for the redo log", size(now.redo_log)));
    }
    let block = titled(format!("{title} "));
    let [bar, held] =
        Layout::vertical([Constraint::Length(2), Constraint::Length(1)]).areas(block.inner(area));
    frame.render_widget(block, area);
    let parts = [
        ("in use", now.used, USED),
        ("held back", now.held, HELD),
        ("free", now.free, FREE),
        ("never used", now.tail(), TAIL),
    ];
    draw_bar(frame, bar, &parts, now.file, |bytes| {
        format!("{} ({:.0} %)", size(bytes), 100.0 * bytes as f64 / now.file.max(1) as f64)
    });
    let by = holders(view);
    if !by.is_empty() {
        let text = format!("held back by {}", by.join(", "));
        frame.render_widget(Paragraph::new(text).style(Style::new().fg(HELD)), held);
    }
}

/// Who holds pages back, most first.
fn holders(view: &View) -> Vec<String> {
    let now = &view.now;
    let mut holders: Vec<_> = now.readers.iter().filter(|reader| reader.held > 0).collect();
    // Readers of one snapshot hold back the same pages.
    holders.dedup_by_key(|reader| reader.info.txn);
    holders.sort_by_key(|reader| std::cmp::Reverse(reader.held));
    let readers = holders.iter().map(|r| format!("process {}: {}", r.info.pid, size(r.held)));
    let mut by: Vec<String> = readers.collect();
    let readers: u64 = holders.iter().map(|reader| reader.held).sum();
    if now.held_by_flush > 0 {
        by.push(format!("what is not on disk yet: {}", size(now.held_by_flush)));
    }
    let several = now.held.saturating_sub(readers + now.held_by_flush);
    if several > 0 && !by.is_empty() {
        by.push(format!("several: {}", size(several)));
    }
    by
}

fn draw_readers(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let now = &view.now;
    let title = format!(" readers: {} of {} ", now.readers.len(), now.max_readers);
    let shown = now.readers.iter().skip(view.scroll).enumerate();
    let rows = shown.map(|(i, ReaderNow { info: reader, program, held })| {
        // Who is far behind may hold pages back.
        let style = if reader.lag > 1000 { Style::new().fg(HELD) } else { Style::new() };
        // The first one shown is the one that a key is about.
        let mark = if i == 0 { ">" } else { "" };
        Row::new([
            Cell::from(mark),
            Cell::from(reader.pid.to_string()),
            Cell::from(program.clone()),
            Cell::from(reader.thread.to_string()),
            Cell::from(reader.txn.to_string()),
            Cell::from(count(reader.lag)),
            Cell::from(format!("{:.1} s", reader.age.as_secs_f64())),
            Cell::from(size(*held)),
            Cell::from(if reader.is_parked { "parked" } else { "reads" }),
        ])
        .style(style)
    });
    let widths = [
        Constraint::Length(1),
        Constraint::Length(9),
        Constraint::Length(16),
        Constraint::Length(9),
        Constraint::Length(12),
        Constraint::Length(14),
        Constraint::Length(10),
        Constraint::Length(11),
        Constraint::Min(6),
    ];
    let names = [
        "",
        "process",
        "program",
        "thread",
        "snapshot",
        "commits behind",
        "age",
        "holds back",
        "state",
    ];
    let head = Row::new(names).style(DIM);
    let table = Table::new(rows, widths).header(head).block(titled(title));
    frame.render_widget(table, area);
}

fn draw_tables(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let mut tables: Vec<&TableNow> = view.now.tables.iter().collect();
    tables.sort_by(|a, b| {
        b.growth
            .abs()
            .total_cmp(&a.growth.abs())
            .then(b.bytes.cmp(&a.bytes))
            .then(a.name.cmp(&b.name))
    });
    let rows = tables.iter().map(|table| {
        let growth = if table.growth == 0.0 { String::new() } else { rate(table.growth) };
        Row::new([table.name.clone(), count(table.records), growth, size(table.bytes)])
    });
    let widths = [
        Constraint::Min(20),
        Constraint::Length(16),
        Constraint::Length(14),
        Constraint::Length(14),
    ];
    let head = Row::new(["table", "records", "a second", "size"]).style(DIM);
    let title = format!(" tables: {} ", tables.len());
    frame.render_widget(Table::new(rows, widths).header(head).block(titled(title)), area);
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::super::Sample;
    use super::*;

    fn sample() -> Sample {
        let table = |name: &str, records| TableNow {
            name: name.into(),
            records,
            bytes: records * 100,
            growth: 0.0,
        };
        Sample {
            newest: 1000,
            steady: 990,
            page_size: 4096,
            file: 100 << 20,
            used: 60 << 20,
            free: 20 << 20,
            held: 10 << 20,
            free_space_log: 0,
            redo_log: 16 << 20,
            held_by_flush: 1 << 20,
            readers: Vec::new(),
            done: zubilo::EnvCounters::default(),
            max_readers: 1024,
            tables: vec![table("orders", 120_000), table("customers", 5000)],
            untrusted: None,
        }
    }

    fn view() -> View {
        View {
            path: "shop.zubilo".into(),
            now: sample(),
            commits: VecDeque::new(),
            bytes: VecDeque::new(),
            since: zubilo::EnvCounters::default(),
            interval: Duration::from_secs(1),
            paused: false,
            scroll: 0,
            wish: None,
            outcome: String::new(),
        }
    }

    fn shown(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_store_at_rest() {
        insta::assert_snapshot!(shown(&view(), 100, 26));
    }

    #[test]
    fn a_store_at_work_with_readers() {
        let mut view = view();
        let (_dir, env) = {
            let dir = tempfile::tempdir().unwrap();
            let env = zubilo::Options::new().open(dir.path().join("s")).unwrap();
            (dir, env)
        };
        // What readers look like only the store can say.
        let _read = env.read().unwrap();
        let mut reader = env.info().unwrap().readers.remove(0);
        (reader.pid, reader.thread, reader.age) = (4711, 4712, Duration::from_millis(61_500));
        for step in 1..=40u64 {
            let mut next = sample();
            next.newest = view.now.newest + step * 3 % 50;
            next.tables[0].records = view.now.tables[0].records + 7 * step;
            let mut late = reader.clone();
            late.lag = 5000 + step;
            late.txn = zubilo::TxnId(0);
            let named =
                |info, program: &str, held| ReaderNow { info, program: program.into(), held };
            next.readers = vec![named(late, "backup", 7 << 20), named(reader.clone(), "shop", 0)];
            next.done = view.now.done;
            next.done.commits += 10;
            next.done.bytes_written += 40_960 * (step * 3 % 50);
            next.done.commit_prepare_ns += 10 * 2_000;
            next.done.commit_layout_ns += 10 * 9_900;
            next.done.commit_write_ns += 10 * 40_000;
            next.done.commit_flush_ns += 10 * 1_150_000;
            view.step(next, Duration::from_millis(500));
        }
        insta::assert_snapshot!(shown(&view, 100, 26));
        // A terminal that is too small is no reason to fall.
        for (width, height) in [(20, 5), (1, 1), (300, 100)] {
            shown(&view, width, height);
        }
    }

    #[test]
    fn keys_do_what_the_last_line_says() {
        let mut view = view();
        let mut press = |code| view.key(KeyEvent::new(code, KeyModifiers::NONE));
        assert!(press(KeyCode::Char('p')) && press(KeyCode::Char('+')) && press(KeyCode::Down));
        assert!(!press(KeyCode::Char('q')) && !press(KeyCode::Esc));
        assert!(view.paused);
        assert_eq!((view.interval, view.scroll), (Duration::from_millis(500), 0));
        assert!(!view.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(shown(&view, 80, 26).contains("paused"));
    }

    #[test]
    fn a_key_expires_the_chosen_reader_if_it_is_parked() {
        let dir = tempfile::tempdir().unwrap();
        let env = zubilo::Options::new().open(dir.path().join("s")).unwrap();
        let parked = env.read().unwrap().park();
        env.update(|txn| txn.table_or_create("t")?.put("k", "v")).unwrap();
        let at_work = env.read().unwrap();
        let mut view = view();
        let press = |view: &mut View, code| {
            view.now = super::super::look(&env).unwrap();
            assert!(view.key(KeyEvent::new(code, KeyModifiers::NONE)));
            view.act(&env);
        };
        // Nothing happens to a reader at work, or without the key.
        press(&mut view, KeyCode::Down);
        assert_eq!(view.scroll, 1);
        press(&mut view, KeyCode::Char('x'));
        assert!(view.outcome.contains("is not parked"), "{}", view.outcome);
        assert!(!parked.is_expired());
        press(&mut view, KeyCode::Up);
        press(&mut view, KeyCode::Char('x'));
        assert!(view.outcome.ends_with("expired"), "{}", view.outcome);
        assert!(parked.is_expired());
        assert!(at_work.table("t").unwrap().get("k").unwrap().is_some());
        assert!(shown(&view, 140, 26).contains("expired"));
        // Of no reader.
        drop((parked, at_work));
        press(&mut view, KeyCode::Char('x'));
        assert!(view.wish.is_none());
    }
}
