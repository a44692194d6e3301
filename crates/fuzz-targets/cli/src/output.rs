//! The output of the command, but for its last word: thousands of runs a second say nothing.

#[path = "../../../zubilo-cli/src/output.rs"]
mod whole;

use serde_json::Value;

pub(crate) use self::whole::*;
use crate::failure::Done;

/// Takes the place of what prints the result.
pub(crate) fn say(_as_json: bool, _value: &Value, _text: &str) -> Done<()> {
    Ok(())
}
