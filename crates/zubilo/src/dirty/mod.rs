//! What a write transaction keeps in memory: copies of the pages it changes (the arena), large
//! values on their way to the file, and the book of pages it sets free. It is grafted onto a
//! snapshot: a dirty branch refers to a dirty child by arena slot, to a clean one by number.

pub(crate) mod arena;
mod recent;
pub(crate) mod workspace;

pub(crate) use arena::Arena;
pub(crate) use workspace::{Freed, View, Workspace, no_list, with_room};
