//! System calls of a program, as strace writes them down: tests replay them on a disk of their own.
//!
//! A line of a recording is a thread, a call and its result. Bytes and paths are written in hexadecimal, so
//! that no quote or comma within them can be taken for the end of an argument.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// strace, set up to record `calls` (names with commas) of a program and its threads into the file `out`.
/// The program and its arguments are still to be added.
pub fn command(calls: &str, out: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-v", "-xx", "-s", "100000000"]);
    strace.args(["-e", &format!("trace={calls}"), "-o"]).arg(out);
    strace
}

/// The thread of a line, and what it did.
pub fn thread_and_call(line: &str) -> Option<(&str, &str)> {
    let (thread, call) = line.split_once(char::is_whitespace)?;
    Some((thread, call.trim_start()))
}

/// A number; addresses are hexadecimal.
fn parsed(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// One call, whole or without its end.
#[derive(Clone, Copy)]
pub struct Call<'t>(pub &'t str);

impl Call<'_> {
    /// The name of the call.
    pub fn name(&self) -> &str {
        self.0.split('(').next().unwrap_or_default()
    }

    /// What it returned: -1 if it failed, none if the end of the line is missing.
    pub fn result(&self) -> Option<i64> {
        let (_, result) = self.0.rsplit_once(" = ")?;
        Some(result.split(' ').next().and_then(parsed).unwrap_or(-1))
    }

    /// Argument `n`, from 0, if it is a number and no bytes come before it.
    pub fn number(&self, n: usize) -> Option<i64> {
        let (_, arguments) = self.0.split_once('(')?;
        parsed(arguments.split([',', ')']).nth(n)?.trim())
    }

    /// The file that it works on.
    pub fn descriptor(&self) -> Option<i64> {
        self.number(if self.name() == "mmap" { 4 } else { 0 })
    }

    fn quoted(&self) -> impl Iterator<Item = Vec<u8>> {
        let byte = |hex: &str| u8::from_str_radix(hex, 16).expect("two digits");
        let unhex = move |text: &str| text.split("\\x").skip(1).map(byte).collect();
        self.0.split('"').skip(1).step_by(2).map(unhex)
    }

    /// The bytes that it writes, of all its buffers.
    pub fn bytes(&self) -> Vec<u8> {
        self.quoted().flatten().collect()
    }

    /// The paths that it names.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.quoted().map(|path| OsString::from_vec(path).into()).collect()
    }

    /// Where `pwrite64`, `pwritev` or `pwritev2` writes: the second number after the bytes.
    pub fn place(&self) -> u64 {
        let end = if self.name() == "pwrite64" { '"' } else { ']' };
        let rest = self.0.rsplit(end).next().unwrap_or_default();
        let place = rest.trim_start_matches(',').split([',', ')']).nth(1);
        place.and_then(|n| n.trim().parse().ok()).expect("a place")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_taken_apart() {
        let line = r#"17  pwrite64(5, "\x22\x2c\x29", 3, 4096) = 3"#;
        let (thread, call) = thread_and_call(line).unwrap();
        let call = Call(call);
        assert_eq!((thread, call.name(), call.descriptor()), ("17", "pwrite64", Some(5)));
        assert_eq!((call.bytes(), call.place(), call.result()), (b"\",)".to_vec(), 4096, Some(3)));
        let call = Call(
            r#"pwritev2(4, [{iov_base="\x61", iov_len=1}, {iov_base="\x62", iov_len=1}], 2, 8192, 0"#,
        );
        assert_eq!((call.bytes(), call.place(), call.result()), (b"ab".to_vec(), 8192, None));
        let call = Call(r#"rename("\x61", "\x62") = -1 ENOENT (No such file or directory)"#);
        assert_eq!((call.paths(), call.result()), (vec!["a".into(), "b".into()], Some(-1)));
        let call = Call("mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 9, 0) = 0x7f12");
        assert_eq!((call.descriptor(), call.number(1)), (Some(9), Some(8192)));
        assert_eq!(call.result(), Some(0x7f12));
        let call = Call("msync(0x7f12, 4096, MS_SYNC) = 0");
        assert_eq!(
            (call.number(0), call.number(1), call.result()),
            (Some(0x7f12), Some(4096), Some(0))
        );
    }
}
