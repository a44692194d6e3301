//! Both engines side by side.
//!
//! LMDB's contract leaves some positions open: after a search that found nothing, at an end that
//! others have moved, where a replaced value would sort elsewhere. Steps from there are not made
//! until the cursor is placed again; everything else must be the same.

use std::cmp::Ordering;
use std::path::Path;

use crate::lmdb::Lmdb;
use crate::ours::Ours;
use crate::program::{How, Kind, Move, Order, Program, Step, Values};
use crate::{Answer, Engine};
use support::lmdb::Api;

/// How far LMDB's contract fixes the position of a cursor.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Not at all.
    open: bool,
    /// After the last record: only steps back are fixed.
    behind: bool,
    /// LMDB remembers that this is the end, whatever is added after it.
    sticky: bool,
    /// Others changed the table since the cursor was placed: LMDB may count as before.
    old_count: bool,
    /// Something was deleted, maybe here.
    gap: bool,
    /// The same, since the cursor came to a key with several values: LMDB forgets it only there.
    old_gap: bool,
    /// Another key went: LMDB may take this cursor for marked by that, and give a value again.
    skewed: bool,
    /// On a key with several values.
    several: bool,
    /// On a key with one value, but LMDB still has the place among those of a key before.
    old_place: bool,
}

/// Runs a program on both, and on another library with LMDB's interface if one is given; returns where
/// they differ.
pub fn run(program: &Program, dir: &Path, third: Option<Api>) -> Result<(), String> {
    let ours = Ours::create(dir, program).map_err(|e| e.to_string())?;
    let third = third.map(|api| Lmdb::create_with(api, &dir.join("third"), program.kind));
    let lmdb = Lmdb::create(dir, program.kind);
    let places = [Place::default(); 3];
    // What ran last when LMDB itself crashes.
    let trace = std::env::var_os("ZUBILO_TRACE").is_some();
    let mut both = Both {
        ours,
        lmdb,
        third,
        kind: program.kind,
        places,
        saved: Vec::new(),
        odd_singles: false,
    };
    for (i, step) in program.steps.iter().enumerate() {
        if trace {
            eprintln!("{i}: {step:?}");
        }
        both.step(step).map_err(|why| format!("step {i}, {step:?}: {why}"))?;
    }
    Ok(())
}

/// Runs a program on Zubilo alone.
pub fn run_ours(program: &Program, dir: &Path) -> Result<(), String> {
    let mut ours = Ours::create(dir, program).map_err(|e| e.to_string())?;
    for step in &program.steps {
        ours.step(step);
    }
    ours.check().pop().map_or(Ok(()), Err)
}

/// Runs a program on another library with LMDB's interface alone.
pub fn run_third(program: &Program, dir: &Path, api: Api) -> Result<(), String> {
    let mut third = Lmdb::create_with(api, &dir.join("third"), program.kind);
    for step in &program.steps {
        third.step(step);
    }
    Ok(())
}

struct Both {
    ours: Ours,
    lmdb: Lmdb,
    /// Another library with LMDB's interface.
    third: Option<Lmdb>,
    kind: Kind,
    places: [Place; 3],
    /// The places when each nested transaction began.
    saved: Vec<[Place; 3]>,
    /// For LMDB a key with one value may look like one with several.
    odd_singles: bool,
}

impl Both {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        if !self.is_defined(step) {
            return Ok(());
        }
        let (ours, theirs) = (self.ours.step(step), self.lmdb.step(step));
        if ours != theirs {
            return Err(format!("ours is {ours:?}, LMDB's {theirs:?}"));
        }
        if let Some(third) = &mut self.third {
            let third = third.step(step);
            if third != theirs {
                return Err(format!("the third is {third:?}, LMDB's {theirs:?}"));
            }
        }
        self.note(step, &ours);
        if matches!(step, Step::Commit | Step::Abort | Step::CommitAll | Step::Clear) {
            self.compare_all(matches!(step, Step::CommitAll))?;
        }
        Ok(())
    }

    /// Whether LMDB's contract defines what a step gives.
    fn is_defined(&mut self, step: &Step) -> bool {
        let dups = self.kind.has_duplicates();
        match *step {
            Step::Go(c, way, ..) => {
                let place = self.places[usize::from(c)];
                let of_values = matches!(
                    way,
                    Move::FirstDup
                        | Move::LastDup
                        | Move::NextDup
                        | Move::PrevDup
                        | Move::Both
                        | Move::BothRange
                );
                // After the last record, or nowhere because all were deleted, there is no key.
                let keyless = of_values && !absolute(way) && self.ours.is_nowhere(c);
                let skewed = place.skewed && matches!(way, Move::Next | Move::NextDup);
                // LMDB looks for them in the values as they were.
                let old = place.old_count && matches!(way, Move::FirstDup | Move::LastDup);
                if (of_values && !dups) || keyless || skewed || old {
                    return false;
                }
                absolute(way)
                    || (!place.open && !place.behind)
                    || (place.behind && matches!(way, Move::Prev | Move::PrevNoDup))
            }
            Step::CursorDel(c, _) | Step::Count(c) => {
                let place = self.places[usize::from(c)];
                let defined = match step {
                    Step::Count(_) => dups && !place.old_count,
                    // A value too many that LMDB counts, or too few, and it deletes the key.
                    _ => !dups || !place.old_count,
                };
                !place.open && !place.behind && defined
            }
            Step::PutCurrent(c, value) => {
                let place = self.places[usize::from(c)];
                // With values as they were LMDB loses some.
                let old = dups && place.old_count;
                !place.open && !place.behind && !old && self.stays(c, value)
            }
            // LMDB stores nothing then, not even the other values.
            Step::PutMany(_, key, value, _) => {
                let (key, value) = (self.kind.key(key), self.kind.value(value));
                let records = self.ours.records();
                let mut own = records.iter().filter(|(k, _)| *k == key);
                !(own.next().is_some_and(|(_, v)| *v == value) && own.next().is_none())
            }
            _ => true,
        }
    }

    /// Whether a value that replaces the one under a cursor sorts where that did.
    fn stays(&mut self, cursor: u8, value: u32) -> bool {
        let Values::Many { order, .. } = self.kind.values else { return true };
        let Answer::Pair(key, old) = self.ours.step(&Step::Go(cursor, Move::Current, 0, 0)) else {
            return true;
        };
        // The mark of a deletion is gone now, so let it be gone there too.
        self.lmdb.step(&Step::Go(cursor, Move::Current, 0, 0));
        if let Some(third) = &mut self.third {
            third.step(&Step::Go(cursor, Move::Current, 0, 0));
        }
        let new = self.kind.value(value);
        let records = self.ours.records();
        // LMDB has no room for a longer one, or loses it.
        let fits = new.len() <= old.len();
        fits && records.iter().filter(|(k, v)| *k == key && *v != old).all(|(_, v)| {
            let (before, after) = (compare(order, v, &old), compare(order, v, &new));
            before == after && after != Ordering::Equal
        })
    }

    /// Follows what the contract fixes of LMDB's positions.
    fn note(&mut self, step: &Step, answer: &Answer) {
        if *answer == Answer::Incompatible {
            return;
        }
        let found = !matches!(answer, Answer::NotFound | Answer::Exists | Answer::Invalid);
        let dups = self.kind.has_duplicates();
        let deletes = matches!(step, Step::Del(..) | Step::CursorDel(..));
        self.odd_singles |= dups && (deletes || *answer == Answer::Exists);
        match *step {
            Step::Begin => self.saved.push(self.places),
            Step::Commit => drop(self.saved.pop()),
            Step::Abort => self.places = self.saved.pop().unwrap_or_default(),
            Step::CommitAll => self.saved.clear(),
            Step::Open(_) | Step::Close(_) => {}
            Step::Put(key, ..) | Step::Fill(key, _) | Step::Reserve(key, ..) => {
                self.changed(None);
                self.stored(None, key);
            }
            Step::Del(..) | Step::Clear => {
                self.changed(None);
                self.deleted(None);
            }
            Step::Get(_) | Step::Count(_) | Step::PutCurrent(..) | Step::Park(_) => {}
            Step::CursorDel(c, _) => {
                self.changed(Some(c));
                self.deleted(Some(c));
                let place = &mut self.places[usize::from(c)];
                place.open |= place.old_place;
            }
            Step::PutMany(c, key, ..) | Step::Packed(c, key, _) => {
                self.changed(Some(c));
                self.stored(Some(c), key);
                self.placed(c, found, true);
                // After a walk back the cursor is on the last value of the first page, and which that is
                // depends on how the values are divided among pages.
                self.places[usize::from(c)].open |= matches!(step, Step::Packed(_, _, true));
            }
            Step::CursorPut(c, key, _, how) => {
                self.changed(Some(c));
                self.stored(Some(c), key);
                self.placed(c, found, matches!(how, How::Append | How::AppendDup));
            }
            Step::Go(c, way, ..) => self.moved(c, way, found),
        }
        if matches!(step, Step::CommitAll) {
            self.places = Default::default();
        }
    }

    /// A cursor moved, or found nothing.
    fn moved(&mut self, c: u8, way: Move, found: bool) {
        let dups = self.kind.has_duplicates();
        let old_gap = self.old_gap(c);
        let several = self.has_several(c);
        let place = &mut self.places[usize::from(c)];
        let before = place.several || place.old_place || self.odd_singles;
        let old_place = !several && !absolute(way) && before;
        let steps_on = matches!(way, Move::Next | Move::NextDup | Move::NextNoDup);
        let sticks = way == Move::Current && place.sticky
            || matches!(
                way,
                Move::Last | Move::LastDup | Move::Prev | Move::PrevDup | Move::PrevNoDup
            );
        if found {
            // Steps do not look again at how many values there are.
            let old_count = place.old_count && !absolute(way);
            *place = Place {
                sticky: sticks,
                old_count,
                old_gap,
                several,
                old_place,
                ..Place::default()
            };
        } else {
            if absolute(way) {
                let behind = way == Move::SetRange;
                let sticky = place.sticky || behind;
                *place = Place { open: !behind, behind, sticky, old_gap, ..*place };
            }
            place.sticky |= steps_on;
            // For LMDB this is the end, also of the values that the key still has.
            place.open |= dups && way == Move::NextNoDup;
            // LMDB forgets one half of what it remembers of a deletion.
            place.open |= place.gap && way == Move::NextDup;
            // Back from a deleted first record: at a key that looks like one with several values LMDB
            // stands before its value, else on it.
            let back = matches!(way, Move::Prev | Move::PrevNoDup | Move::PrevDup);
            place.open |= back && place.gap && before && !several;
        }
    }

    /// The table changed: where LMDB remembers an end, it may be wrong now.
    fn changed(&mut self, by: Option<u8>) {
        for (i, place) in self.places.iter_mut().enumerate() {
            if by.map(usize::from) != Some(i) {
                place.open |= place.sticky;
                place.old_count = true;
            }
        }
    }

    /// A cursor stands on what was stored through it. Where LMDB remembers an end of before it may
    /// not see that more values follow.
    fn placed(&mut self, c: u8, found: bool, sticky: bool) {
        let (old_gap, several) = (self.old_gap(c), self.has_several(c));
        let place = &mut self.places[usize::from(c)];
        let end = place.sticky || place.gap;
        let before = place.several || place.old_place || self.odd_singles;
        let old_place = !several && before;
        let open = !found || place.sticky || (end && self.kind.has_duplicates());
        let sticky = sticky || end;
        *place = Place { open, sticky, old_gap, several, old_place, ..Place::default() };
    }

    fn deleted(&mut self, by: Option<u8>) {
        let dups = self.kind.has_duplicates();
        for (c, place) in (0..).zip(&mut self.places) {
            (place.gap, place.old_gap) = (true, true);
            place.skewed |= dups && Some(c) != by;
        }
    }

    /// Whether LMDB may remember a deletion of before.
    fn old_gap(&mut self, cursor: u8) -> bool {
        self.places[usize::from(cursor)].old_gap && !self.has_several(cursor)
    }

    fn has_several(&mut self, cursor: u8) -> bool {
        matches!(self.ours.step(&Step::Count(cursor)), Answer::Count(2..))
    }

    /// A value was added to a key: LMDB may take cursors there for marked by a deletion of before.
    fn stored(&mut self, by: Option<u8>, key: u32) {
        let key = self.kind.key(key);
        for c in (0..3).filter(|c| Some(*c) != by) {
            if self.places[usize::from(c)].old_gap && self.ours.key_under(c) == Some(key.clone()) {
                self.places[usize::from(c)].open = true;
            }
        }
    }

    fn compare_all(&mut self, committed: bool) -> Result<(), String> {
        let (ours, theirs) = (self.ours.records(), self.lmdb.records());
        if ours != theirs {
            let at = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            let (ours, theirs) = (ours.len(), theirs.len());
            return Err(format!("{ours} records, LMDB has {theirs}, the first other one: {at:?}"));
        }
        if let Some(third) = &mut self.third {
            let (third, count) = (third.records(), third.entries());
            if third != ours || count != ours.len() as u64 {
                let third = third.len();
                return Err(format!("the third has {third} records, {} are right", ours.len()));
            }
        }
        if let Some(i) = self.ours.miscounted(&ours) {
            return Err(format!("record {i} is counted otherwise"));
        }
        let (ours, theirs) = (self.ours.entries(), self.lmdb.entries());
        if ours != theirs {
            return Err(format!("{ours} are counted, LMDB counts {theirs}"));
        }
        match self.ours.check().first() {
            Some(problem) if committed => Err(format!("the check found: {problem}")),
            _ => Ok(()),
        }
    }
}

/// A move that does not start from where the cursor stands.
fn absolute(way: Move) -> bool {
    use Move::{Both, BothRange, First, Last, Set, SetRange};
    matches!(way, First | Last | Set | SetRange | Both | BothRange)
}

fn compare(order: Order, a: &[u8], b: &[u8]) -> Ordering {
    match order {
        Order::Bytes => a.cmp(b),
        Order::Backwards => b.cmp(a),
        Order::Reversed | Order::Integer(_) => a.iter().rev().cmp(b.iter().rev()),
    }
}
