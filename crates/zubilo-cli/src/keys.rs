//! The key or passphrase of an encrypted store: from a file or a terminal, never from the command line, which others
//! see.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use zubilo::Options;

use crate::failure::{Done, Failure};

/// A key is no longer, whatever way it is written.
const LONGEST: u64 = 64 << 10;

/// The key of the store that is opened.
#[derive(Args, Clone, Default)]
pub(crate) struct KeyArgs {
    /// The store is encrypted, or is to be, with the key in this file: 32 bytes, or as 64 hexadecimal digits
    #[arg(long, value_name = "FILE", conflicts_with_all = ["passphrase_file", "passphrase"])]
    key_file: Option<PathBuf>,
    /// The same with the passphrase in this file, without a line feed at its end
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase")]
    passphrase_file: Option<PathBuf>,
    /// The same with a passphrase that is asked for
    #[arg(long)]
    passphrase: bool,
    /// What was said, for a store that is opened more than once.
    #[arg(skip)]
    said: OnceLock<Vec<u8>>,
}

/// The key of a copy.
#[derive(Args, Debug, Default)]
pub(crate) struct NewKeyArgs {
    /// Encrypt the copy with the key in this file [default: as the store is]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to_passphrase_file", "to_passphrase", "to_plain"])]
    to_key_file: Option<PathBuf>,
    /// The same with the passphrase in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to_passphrase", "to_plain"])]
    to_passphrase_file: Option<PathBuf>,
    /// The same with a passphrase that is asked for
    #[arg(long, conflicts_with = "to_plain")]
    to_passphrase: bool,
    /// Do not encrypt the copy of an encrypted store
    #[arg(long)]
    to_plain: bool,
}

impl fmt::Debug for KeyArgs {
    /// Without what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyArgs { key_file, passphrase_file, passphrase, said: _ } = self;
        let mut shown = f.debug_struct("KeyArgs");
        shown.field("key_file", key_file).field("passphrase_file", passphrase_file);
        shown.field("passphrase", passphrase).finish()
    }
}

impl KeyArgs {
    /// The options with the key that was given.
    pub(crate) fn set(&self, options: Options) -> Done<Options> {
        if self.passphrase {
            return Ok(options.passphrase(self.say(false)?));
        }
        with_key(options, self.key_file.as_deref(), self.passphrase_file.as_deref())
    }

    /// Before a store is made: a passphrase that is asked for is asked for twice.
    pub(crate) fn for_new(&self) -> Done<()> {
        if self.passphrase { self.say(true).map(drop) } else { Ok(()) }
    }

    fn say(&self, is_new: bool) -> Done<&[u8]> {
        if let Some(said) = self.said.get() {
            return Ok(said);
        }
        let said = asked("Passphrase of the store: ", is_new)?;
        Ok(self.said.get_or_init(|| said))
    }
}

impl NewKeyArgs {
    /// Options with the key of the copy; none if it is to be that of the store.
    pub(crate) fn options(&self) -> Done<Option<Options>> {
        let NewKeyArgs { to_key_file, to_passphrase_file, to_passphrase, to_plain } = self;
        if to_key_file.is_none() && to_passphrase_file.is_none() && !to_passphrase && !to_plain {
            return Ok(None);
        }
        if *to_passphrase {
            let said = asked("Passphrase of the copy: ", true)?;
            return Ok(Some(Options::new().passphrase(said)));
        }
        with_key(Options::new(), to_key_file.as_deref(), to_passphrase_file.as_deref()).map(Some)
    }
}

fn with_key(options: Options, key: Option<&Path>, passphrase: Option<&Path>) -> Done<Options> {
    if let Some(path) = key {
        let bytes = read(path)?;
        let key = key_of(&bytes).ok_or_else(|| {
            let what = format!("read the key in {}", path.display());
            Failure::usage(what, "it is neither 32 bytes nor 64 hexadecimal digits")
                .advise("make one with `head -c 32 /dev/urandom`")
        })?;
        return Ok(options.encryption_key(&key));
    }
    match passphrase {
        Some(path) => {
            let bytes = read(path)?;
            let said = line_of(&bytes);
            if said.is_empty() {
                let what = format!("read the passphrase in {}", path.display());
                return Err(Failure::usage(what, "there is none"));
            }
            Ok(options.passphrase(said))
        }
        None => Ok(options),
    }
}

fn read(path: &Path) -> Done<Vec<u8>> {
    let failed = |e: io::Error| Failure::io(format!("read {}", path.display()), &e);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        let what = format!("read {}", path.display());
        return Err(Failure::usage(what, "it is longer than any key or passphrase"));
    }
    Ok(bytes)
}

/// What a file says that ends with a line feed or does not.
fn line_of(bytes: &[u8]) -> &[u8] {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn key_of(bytes: &[u8]) -> Option<[u8; 32]> {
    if let Ok(key) = bytes.try_into() {
        return Some(key);
    }
    let digits = line_of(bytes);
    let mut key = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(key)
}

/// Asks for a passphrase on the terminal, without showing it; for a new one twice.
fn asked(prompt: &str, is_new: bool) -> Done<Vec<u8>> {
    let said = asked_once(prompt)?;
    if is_new && asked_once("The same again: ")? != said {
        return Err(Failure::usage("ask for the passphrase", "the two are not the same"));
    }
    Ok(said)
}

fn asked_once(prompt: &str) -> Done<Vec<u8>> {
    let failed = |e: io::Error| Failure::io("ask for the passphrase", &e);
    let input = io::stdin();
    if !input.is_terminal() {
        return Err(Failure::usage("ask for the passphrase", "there is no terminal to ask on")
            .advise("use --passphrase-file"));
    }
    let shown = tcgetattr(&input).map_err(|e| failed(e.into()))?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    eprint!("{prompt}");
    io::stderr().flush().map_err(failed)?;
    tcsetattr(&input, OptionalActions::Flush, &hidden).map_err(|e| failed(e.into()))?;
    let mut line = Vec::new();
    let said = input.lock().take(LONGEST).read_until(b'\n', &mut line);
    let back = tcsetattr(&input, OptionalActions::Now, &shown);
    eprintln!();
    said.map_err(failed)?;
    back.map_err(|e| failed(e.into()))?;
    Ok(line_of(&line).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_not_shown() {
        let args = KeyArgs { said: OnceLock::from(b"visible?".to_vec()), ..KeyArgs::default() };
        let numbers = format!("{:?}", b"visible?");
        let shown = format!("{args:?}");
        assert!(!shown.contains("visible?") && !shown.contains(numbers.trim_matches(['[', ']'])));
    }

    #[test]
    fn a_passphrase_is_neither_empty_nor_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passphrase");
        for (bytes, is_one) in [
            (Vec::new(), false),
            (b"\r\n".to_vec(), false),
            (vec![b'x'; LONGEST as usize + 1], false),
            (vec![b'x'; LONGEST as usize], true),
        ] {
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(with_key(Options::new(), None, Some(&path)).is_ok(), is_one);
        }
    }

    #[test]
    fn keys_are_bytes_or_digits() {
        let digits = "00ff".repeat(16);
        let key = [0, 0xff].repeat(16);
        assert_eq!(key_of(&key).unwrap().as_slice(), key);
        assert_eq!(key_of(digits.as_bytes()).unwrap().as_slice(), key);
        assert_eq!(key_of(format!("{digits}\n").as_bytes()).unwrap().as_slice(), key);
        for wrong in ["", "00ff", &"0x00ff00".repeat(8), &"00fg".repeat(16)] {
            assert_eq!(key_of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
