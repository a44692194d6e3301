//! Looking a store through: its pages, its damage, its figures, its readers; copies that report how far
//! they are.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::time::{Duration, UNIX_EPOCH};

use zubilo::{CheckReport, PageKind, PageVisit, ReaderInfo};

use crate::env::{FIRST_TXN, MDB_env, copy_fd, copy_to, env_of, put_out};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, live};

use super::given;

type Visitor = unsafe extern "C" fn(
    u64,
    c_uint,
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    c_int,
    usize,
    usize,
    usize,
    usize,
) -> c_int;
pub(super) type Progress = unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int;
type Problem = unsafe extern "C" fn(*mut c_void, u64, *const c_char, *const c_char) -> c_int;
type OneReader = unsafe extern "C" fn(*mut c_void, *const Reader) -> c_int;

/// A reader of any process: `zubilo_reader`.
#[repr(C)]
pub(super) struct Reader {
    thread: u64,
    txn: u64,
    lag: u64,
    behind_ms: u64,
    age_ms: u64,
    pid: libc::pid_t,
    parked: bool,
}

impl Reader {
    fn of(reader: &ReaderInfo) -> Reader {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Reader {
            thread: reader.thread,
            txn: reader.txn.0.saturating_sub(FIRST_TXN),
            lag: reader.lag,
            behind_ms: ms(reader.behind),
            age_ms: ms(reader.age),
            pid: reader.pid as libc::pid_t,
            parked: reader.is_parked,
        }
    }
}

/// A name as a C string, up to the first zero byte, which only programs in other languages put in.
fn text(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// The numbers of kinds of pages in `zubilo.h`.
fn number(kind: PageKind) -> c_int {
    match kind {
        PageKind::Branch => 1,
        PageKind::Leaf => 2,
        PageKind::Run => 3,
        PageKind::FreeSpaceLog => 4,
        PageKind::Free => 5,
        _ => 6,
    }
}

fn visit(visitor: Visitor, context: *mut c_void, page: &PageVisit<'_>, page_size: u64) -> c_int {
    let name = text(page.table);
    let table = match page.kind {
        PageKind::Branch | PageKind::Leaf | PageKind::Run => name.as_ptr(),
        _ => std::ptr::null(),
    };
    let unused = (page.count * page_size).saturating_sub(page.used);
    let count = c_uint::try_from(page.count).unwrap_or(c_uint::MAX);
    // SAFETY: the program gave function and context for this.
    unsafe {
        visitor(
            page.page.0,
            count,
            context,
            c_int::from(page.level),
            table,
            page_size as usize,
            number(page.kind),
            page.entries,
            page.used as usize,
            0,
            unused as usize,
        )
    }
}

/// Damage is an error, though the walk, or the check, was done.
fn sound(report: &CheckReport) -> Result<()> {
    if report.is_ok() { Ok(()) } else { Err(Code::CORRUPTED) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_env_pgwalk(
    txn: *mut MDB_txn,
    visitor: Option<Visitor>,
    context: *mut c_void,
    _any_order: bool,
) -> c_int {
    entry(txn, || {
        let visitor = visitor.ok_or(Code::EINVAL)?;
        let store = &live(txn)?.env()?.newest()?.store;
        let page_size = store.page_size() as u64;
        let mut answer = 0;
        let walked = store.walk_pages(&mut |page| {
            answer = visit(visitor, context, page, page_size);
            answer == 0
        });
        match (walked, answer) {
            (Ok(report), _) => sound(&report),
            (Err(_), answer) if answer != 0 => Err(Code(answer)),
            (Err(error), _) => Err(error.into()),
        }
    })
}

/// Calls back with pages done and in all; the program stops it by a number other than 0.
pub(super) fn go_on(
    progress: Option<Progress>,
    context: *mut c_void,
    answer: &mut c_int,
) -> impl FnMut(u64, u64) -> bool {
    move |done, all| {
        if let Some(progress) = progress {
            // SAFETY: the program gave function and context for this.
            *answer = unsafe { progress(context, done, all) };
        }
        *answer == 0
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_check(
    env: *mut MDB_env,
    problem: Option<Problem>,
    progress: Option<Progress>,
    context: *mut c_void,
) -> c_int {
    entry(env, || {
        let mut answer = 0;
        let checked =
            env_of(env)?.newest()?.store.check(&mut go_on(progress, context, &mut answer));
        let report = match checked {
            Ok(report) => report,
            Err(_) if answer != 0 => return Err(Code(answer)),
            Err(error) => return Err(error.into()),
        };
        let Some(problem) = problem else { return sound(&report) };
        for found in &report.problems {
            let (table, reason) = (found.table.as_deref().map(text), text(found.reason.as_bytes()));
            let table = table.as_deref().map_or(std::ptr::null(), CStr::as_ptr);
            // SAFETY: the program gave function and context for this.
            let answer = unsafe { problem(context, found.page.0, table, reason.as_ptr()) };
            if answer != 0 {
                return Err(Code(answer));
            }
        }
        sound(&report)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_copy(
    env: *mut MDB_env,
    path: *const c_char,
    fd: c_int,
    flags: c_uint,
    progress: Option<Progress>,
    context: *mut c_void,
) -> c_int {
    entry(env, || {
        let this = env_of(env)?;
        let mut answer = 0;
        let mut progress = go_on(progress, context, &mut answer);
        let copied = if path.is_null() {
            copy_fd(this, fd, flags, &mut progress)
        } else {
            copy_to(this, path, flags, &mut progress)
        };
        drop(progress);
        copied.map_err(|code| if answer == 0 { code } else { Code(answer) })
    })
}

/// As in `zubilo.h`.
#[repr(C)]
#[allow(non_camel_case_types)]
pub(super) struct zubilo_info {
    page_size: u64,
    newest: u64,
    steady: u64,
    file_len: u64,
    used_len: u64,
    reserved: u64,
    size_lower: u64,
    size_upper: u64,
    growth: u64,
    shrink: u64,
    free_pages: u64,
    retired_pages: u64,
    free_space_log_pages: u64,
    readers: u64,
    uuid: [u8; 16],
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_env_info(env: *mut MDB_env, out: *mut zubilo_info) -> c_int {
    entry(env, || {
        let store = &env_of(env)?.newest()?.store;
        let (info, space) = (store.info()?, store.space()?);
        put_out(
            out,
            zubilo_info {
                page_size: info.page_size as u64,
                newest: info.newest.0.saturating_sub(FIRST_TXN),
                steady: info.steady.0.saturating_sub(FIRST_TXN),
                file_len: info.file_len,
                used_len: info.used_len,
                reserved: info.reserved,
                size_lower: info.geometry.lower,
                size_upper: info.geometry.upper,
                growth: info.geometry.growth,
                shrink: info.geometry.shrink,
                free_pages: space.free_pages,
                retired_pages: space.retired_pages,
                free_space_log_pages: space.free_space_log_pages,
                readers: info.readers.len() as u64,
                uuid: info.uuid,
            },
        )
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_readers(
    env: *mut MDB_env,
    function: Option<OneReader>,
    context: *mut c_void,
) -> c_int {
    entry(env, || {
        let function = function.ok_or(Code::EINVAL)?;
        for reader in env_of(env)?.opened()?.store.readers() {
            // SAFETY: the program gave function and context for this.
            let answer = unsafe { function(context, &Reader::of(&reader)) };
            if answer != 0 {
                return Err(Code(answer));
            }
        }
        Ok(())
    })
}

/// As in `zubilo.h`.
#[repr(C)]
#[allow(non_camel_case_types)]
pub(super) struct zubilo_scrub {
    passes: u64,
    finished: u64,
    took_ms: u64,
    problems: u64,
    pages: u64,
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_scrub_report(
    env: *mut MDB_env,
    out: *mut zubilo_scrub,
) -> c_int {
    entry(env, || {
        given(out)?;
        let report = env_of(env)?.opened()?.store.scrub_report().ok_or(Code::NOTFOUND)?;
        let finished = report.finished.duration_since(UNIX_EPOCH).unwrap_or_default();
        put_out(
            out,
            zubilo_scrub {
                passes: report.passes,
                finished: finished.as_secs(),
                took_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
                problems: report.report.problems.len() as u64,
                pages: report.report.pages,
            },
        )
    })
}
