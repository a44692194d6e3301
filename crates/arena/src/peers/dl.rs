//! Libraries of engines that come as packages, loaded when they are asked for: the build needs none
//! of them, and one that is not here is missing with its reason.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::Library;

use super::{Fault, Outcome};

/// Opens a library, for good.
pub(super) fn library(name: &OsStr) -> Outcome<&'static Library> {
    // SAFETY: the initializers of these libraries have no demands on their callers.
    match unsafe { Library::new(name) } {
        Ok(library) => Ok(Box::leak(Box::new(library))),
        Err(error) => {
            // The error's own text leaves out what the system said.
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let why = source.unwrap_or_else(|| error.to_string());
            Err(Fault::Missing(format!("{}: {why}", name.display())))
        }
    }
}

/// Where libraries lie that are built here: `$ARENA_PEERS`, or beside this program.
pub(super) fn built_here(name: &str) -> PathBuf {
    let folder = std::env::var_os("ARENA_PEERS").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.parent()?.to_owned());
    folder.or_else(beside).unwrap_or_default().join(name)
}

/// # Safety
/// `T` is the type of the symbol.
pub(super) unsafe fn symbol<T: Copy>(library: &'static Library, name: &str) -> Outcome<T> {
    // SAFETY: as the caller promises.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|e| Fault::Missing(format!("{name}: {e}")))
}

/// C functions of a library.
pub(super) trait Table: Sized {
    /// Those whose symbols are their names after a prefix.
    fn of(library: &'static Library, prefix: &str) -> Outcome<Self>;

    /// Those of the library of this name.
    fn load(name: &OsStr) -> Outcome<Self> {
        Self::of(library(name)?, "")
    }
}

/// A table of C functions, named as their symbols.
macro_rules! functions {
    ($view:vis $api:ident { $(fn $name:ident($($arg:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
        #[derive(Clone, Copy)]
        // Symbols are spelled as the library spells them.
        #[allow(non_snake_case)]
        $view struct $api {
            $($view $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        impl $crate::peers::dl::Table for $api {
            fn of(
                library: &'static libloading::Library,
                prefix: &str,
            ) -> $crate::peers::Outcome<$api> {
                // SAFETY: the types are those of the library's header.
                unsafe {
                    Ok($api {
                        $($name: $crate::peers::dl::symbol(
                            library,
                            &format!("{prefix}{}", stringify!($name)),
                        )?,)*
                    })
                }
            }
        }
    };
}
pub(super) use functions;

/// A path as C functions take it.
pub(super) fn c_path(path: &Path) -> Outcome<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(Fault::of("path"))
}

/// # Safety
/// `text` is null or a string of C that lives through the call.
pub(super) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// # Safety
/// `data` is valid for `len` bytes and for `'t`, or `len` is 0.
#[inline(always)]
pub(super) unsafe fn bytes<'t>(data: *const u8, len: usize) -> &'t [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(data, len) }
}
