//! What a table's owner might do, from what its pages show.

use crate::output::{count, size};

use super::Tree;

/// Leaves that are fuller are as they should be after insertions in no order.
const LOOSE: f64 = 0.60;
/// Pages of a table below which nothing is worth a word.
const SMALL: u64 = 64;

/// What could be done better, if anything.
pub(super) fn of(tree: &Tree) -> Vec<String> {
    let mut hints = Vec::new();
    let (Some(leaves), page_size) = (tree.leaves(), tree.page_size) else { return hints };
    let share = leaves.share(page_size);
    if leaves.pages >= SMALL && share < LOOSE {
        let packed = (leaves.used as f64 / 0.95) as u64;
        let saved = (leaves.pages * page_size).saturating_sub(packed);
        hints.push(format!(
            "leaves are {:.0} % full: `zubilo compact` would free about {}",
            100.0 * share,
            size(saved)
        ));
    }
    let runs = &tree.runs;
    if runs.pages >= SMALL && runs.share(page_size) < 0.75 && page_size > 4096 {
        hints.push(format!(
            "large values leave {:.0} % of their pages empty: smaller pages would fit better",
            100.0 * (1.0 - runs.share(page_size))
        ));
    }
    let small_runs = runs.pages >= SMALL && runs.entries > 0 && runs.pages == runs.entries;
    if small_runs && page_size < 65536 {
        hints.push(format!(
            "{} values have a page of their own: larger pages would keep them in leaves",
            count(runs.pages)
        ));
    }
    if tree.depth > 4 && page_size < 16384 {
        let times = 16384 / page_size;
        hints.push(format!(
            "{} levels: pages {times} times as large would make it flatter, and writes wider",
            tree.depth
        ));
    }
    if let Some(records) = &tree.records {
        let many = tree.options.has_duplicates() && !tree.options.has_fixed_values();
        if let Some(bytes) = records.values.only().filter(|_| many && tree.entries > 1) {
            hints.push(format!(
                "all values have {} bytes: a table with --fixed-values packs them",
                count(bytes)
            ));
        }
    }
    hints
}
