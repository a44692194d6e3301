//! Where Zubilo stands among the others, row by row: what is not first is listed with its leader.

use std::fmt::Write;

use super::digest::{CellDigest, Digest, Figure, RowDigest, StageDigest};
use super::short;
use crate::spec::{Class, Work};

/// The entry that is ranked.
const OURS: &str = "zubilo";
/// Other entries of Zubilo: not part of the field.
const FAMILY: [&str; 5] = [OURS, "zubilo-calls", "zubilo-log", "zubilo-log-map", "zubilo-c"];
/// Those whose files are compressed; they have no part in comparisons of space.
const COMPRESSING: [&str; 1] = ["sled"];

/// One comparison of the whole field.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) row: String,
    pub(crate) figure: &'static str,
    pub(crate) ours: f64,
    /// From 1; engines that are equally good share the better one.
    pub(crate) rank: usize,
    pub(crate) field: usize,
    pub(crate) leader: String,
    pub(crate) theirs: f64,
    /// How many times the leader is better; at most 1 where we lead.
    pub(crate) behind: f64,
    /// The same for Zubilo without a writable map.
    pub(crate) behind_calls: Option<f64>,
    /// How far behind the goal lets us be.
    pub(crate) goal: f64,
    /// Whether the quartiles of both overlap, where there are any.
    pub(crate) close: bool,
}

/// What is compared in a row.
struct Measure<'m> {
    figure: &'static str,
    of: &'m dyn Fn(&str) -> Option<f64>,
    more_is_better: bool,
    goal: f64,
}

/// All comparisons that Zubilo takes part in.
pub(crate) fn places(digest: &Digest) -> Vec<Place> {
    let mut places = Vec::new();
    for stage in &digest.stages {
        for row in &stage.rows {
            in_row(stage, row, &mut places);
        }
        // Space is compared where a store comes right from a load.
        if stage.name == "load" {
            let of = |engine: &str| {
                let mut ends = stage.endings.iter().filter(|e| e.trouble.is_none());
                let end = ends.find(|e| e.engine == engine && !COMPRESSING.contains(&engine))?;
                Some(end.disk_bytes as f64 / end.records.max(1) as f64)
            };
            let engines: Vec<&str> = stage.endings.iter().map(|e| e.engine.as_str()).collect();
            let name = format!("{} {}: store closed", stage.name, stage.class.name());
            let size =
                Measure { figure: "bytes a record", of: &of, more_is_better: false, goal: 1.1 };
            places.extend(place(name, &engines, &size));
        }
    }
    places
}

fn in_row(stage: &StageDigest, row: &RowDigest, places: &mut Vec<Place>) {
    let engines: Vec<&str> = row.cells.iter().map(|c| c.engine.as_str()).collect();
    let name = format!("{} {}: {}", stage.name, stage.class.name(), row.name);
    let mut compare = |figure, of: &dyn Fn(&CellDigest) -> Option<f64>, more_is_better, goal| {
        let of = |engine: &str| of(row.cell(engine)?);
        let measure = Measure { figure, of: &of, more_is_better, goal };
        if let Some(mut place) = place(name.clone(), &engines, &measure) {
            place.close = figure == "ops/s" && is_close(row, &place.leader);
            places.push(place);
        }
    };
    let random_load = matches!(row.work, Work::Load { sorted: false, .. });
    compare("ops/s", &|c| c.get(Figure::Rate), true, if random_load { 1.3 } else { 1.0 });
    compare("beside: ops/s", &|c| c.get(Figure::BesideRate), true, 1.0);
    let unflushed = matches!(stage.class, Class::Lazy | Class::NoSync);
    if unflushed && row.work == Work::Crud {
        compare("CPU us/op", &CellDigest::cpu, false, 1.0);
    }
    if matches!(row.work, Work::Insert { batch: 100, .. }) {
        // Not calls: what goes through a map needs none.
        compare("device writes a commit", &|c| c.get(Figure::DeviceWrites), false, 1.0);
        compare("bytes a commit", &|c| c.get(Figure::Written), false, 1.0);
    }
    if row.work.has_phases() {
        let space = |c: &CellDigest| {
            let packs = COMPRESSING.contains(&c.engine.as_str());
            c.get(Figure::DiskPeak).filter(|_| !packs && keeps_snapshots(c))
        };
        compare("peak disk MB", &space, false, 1.0);
    }
}

/// An engine without snapshots keeps nothing for the reader, and proves nothing.
fn keeps_snapshots(cell: &CellDigest) -> bool {
    cell.note.as_deref().is_some_and(|note| note.contains("kept its snapshot"))
}

/// Whether the quartiles of both overlap.
fn is_close(row: &RowDigest, leader: &str) -> bool {
    let of = |engine, figure| row.cell(engine).and_then(|c| c.get(figure));
    match (of(OURS, Figure::RateHigh), of(leader, Figure::RateLow)) {
        (Some(high), Some(low)) => high >= low,
        _ => false,
    }
}

/// None if we have no figure, or nobody else has.
fn place(row: String, engines: &[&str], measure: &Measure<'_>) -> Option<Place> {
    let ours = (measure.of)(OURS).filter(|v| v.is_finite())?;
    let better = |a: f64, b: f64| if measure.more_is_better { a > b } else { a < b };
    let field: Vec<(&str, f64)> = engines
        .iter()
        .filter(|engine| !FAMILY.contains(engine))
        .filter_map(|&engine| Some((engine, (measure.of)(engine).filter(|v| v.is_finite())?)))
        .collect();
    let (leader, theirs) =
        field.iter().copied().reduce(|a, b| if better(b.1, a.1) { b } else { a })?;
    let behind = |own: f64| match measure.more_is_better {
        true => theirs / own.max(f64::MIN_POSITIVE),
        false if own == theirs => 1.0,
        false => own / theirs.max(f64::MIN_POSITIVE),
    };
    Some(Place {
        row,
        figure: measure.figure,
        ours,
        rank: 1 + field.iter().filter(|(_, value)| better(*value, ours)).count(),
        field: field.len() + 1,
        leader: leader.into(),
        theirs,
        behind: behind(ours),
        behind_calls: (measure.of)("zubilo-calls").map(behind),
        goal: measure.goal,
        close: false,
    })
}

/// The list in markdown.
pub(crate) fn markdown(digest: &Digest) -> String {
    let all = places(digest);
    let lost: Vec<&Place> = all.iter().filter(|place| place.rank > 1).collect();
    let mut text = format!(
        "Zubilo (Rust API, defaults) is first in {} of {} comparisons.\n",
        all.len() - lost.len(),
        all.len()
    );
    if lost.is_empty() {
        return text;
    }
    text.push_str(
        "\nNot first (*behind*: how many times the leader is better; *calls*: the same for Zubilo without \
         a writable map):\n\n| row | figure | Zubilo | rank | leader | its figure | behind | calls | |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for place in lost {
        let remark = match place {
            _ if place.goal > 1.0 && place.behind <= place.goal => {
                format!("within the goal of {}", place.goal)
            }
            Place { close: true, .. } => "quartiles overlap".into(),
            _ => String::new(),
        };
        let calls = place.behind_calls.map_or("-".into(), |b| format!("{b:.2}"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} of {} | {} | {} | {:.2} | {calls} | {remark} |",
            place.row,
            place.figure,
            short(place.ours),
            place.rank,
            place.field,
            place.leader,
            short(place.theirs),
            place.behind
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::Report;
    use crate::report::record::tests::two_engines;

    fn digest(change: impl FnOnce(&mut Report)) -> Digest {
        let mut report = two_engines();
        change(&mut report);
        Digest::of(&report)
    }

    #[test]
    fn the_faster_engine_leads() {
        let places = places(&digest(|_| {}));
        assert_eq!(places.len(), 1);
        let place = &places[0];
        assert_eq!((place.rank, place.field, place.leader.as_str()), (2, 2, "lmdb"));
        assert_eq!((place.behind, place.close, place.behind_calls), (2.0, false, None));
        let text = markdown(&digest(|_| {}));
        assert!(text.contains("first in 0 of 1"), "{text}");
        assert!(
            text.contains(
                "| transactions SYNC: SET | ops/s | 1.00 k | 2 of 2 | lmdb | 2.00 k | 2.00 |"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_own_family_is_no_rival() {
        let other = digest(|r| r.stages[0].rows[0].cells[1].engine = "zubilo-calls".into());
        assert!(places(&other).is_empty(), "nobody to compare with");
    }

    #[test]
    fn space_counts_after_a_load_and_without_compression() {
        let load = |r: &mut Report| r.stages[0].name = "load".into();
        let space = |places: Vec<Place>| places.into_iter().find(|p| p.figure == "bytes a record");
        let place = space(places(&digest(load))).unwrap();
        assert_eq!((place.rank, place.behind, place.ours), (1, 0.5, 409.6));
        let packed = digest(|r| {
            load(r);
            r.stages[0].endings[1].engine = "sled".into();
        });
        assert!(space(places(&packed)).is_none());
    }

    #[test]
    fn less_is_better_for_costs() {
        let digest = digest(|r| {
            r.stages[0].class = Class::NoSync;
            r.stages[0].rows[0].work = Work::Crud;
        });
        let cpu = places(&digest).into_iter().find(|p| p.figure == "CPU us/op").unwrap();
        assert_eq!((cpu.rank, cpu.behind), (1, 1.0));
    }
}
