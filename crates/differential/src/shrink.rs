//! Making a failing program small: steps are left out as long as it still fails, many at once first.

use crate::program::{Program, Step};

/// The smallest program found that still fails.
pub fn shrink(program: &Program, fails: impl Fn(&Program) -> bool) -> Program {
    let with = |steps: Vec<Step>| Program { kind: program.kind, layout: program.layout, steps };
    let mut best = program.steps.clone();
    let mut size = best.len() / 2;
    while size > 0 {
        let mut from = 0;
        let mut smaller = false;
        while from < best.len() {
            let mut steps = best.clone();
            steps.drain(from..(from + size).min(best.len()));
            if fails(&with(steps.clone())) {
                best = steps;
                smaller = true;
            } else {
                from += size;
            }
        }
        if !smaller || size > 1 {
            size /= 2;
        }
    }
    with(best)
}
