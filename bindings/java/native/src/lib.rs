//! The native half of Zubilo for the JVM.
//!
//! Every function takes and gives numbers: handles, numbers of tables, addresses and lengths of buffers that
//! Java owns. So one set of functions serves both ways in: the Foreign Function and Memory API calls
//! the C names, JNI the others, and no function of JNI's own is called on the way (but for the address
//! of a buffer). Below 0 the answer is a failure, see `error`.
//!
//! What must hold: no sequence of calls from the classes of the Java package can lead to undefined
//! behaviour. `handles` refuses what has ended and keeps alive what is in use; `objects` says which threads may do
//! what; `scan` keeps no positions; `memory` trusts the addresses of buffers, which those classes
//! own. Panics end at the border.

mod calls;
mod error;
mod handles;
mod holder;
mod memory;
mod objects;
mod scan;
mod stack;

use jni_sys::{JNIEnv, jclass, jlong, jobject};

use crate::holder::caught;

/// Versions of this interface: a jar with another library is refused.
const INTERFACE: i64 = 1;

/// The answer as a number; a panic is a failure too.
fn number(call: impl FnOnce() -> Result<i64, error::Failure>) -> i64 {
    // A negative number would be taken for the address of a failure.
    let answer = caught(call).and_then(|answer| {
        let large = zubilo::Error::Invalid("the number is beyond 2^63 - 1, which Java cannot hold");
        if answer < 0 { Err(large.into()) } else { Ok(answer) }
    });
    answer.unwrap_or_else(error::Failure::into_number)
}

/// Exports functions of numbers under a name for C and one for JNI.
macro_rules! exports {
    ($($(#[$doc:meta])* $c:ident, $jni:ident($($arg:ident),*) = $call:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// Addresses are those of buffers with the lengths given, which nobody else touches during the call.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $c($($arg: i64),*) -> i64 {
                number(|| $call)
            }

            $(#[$doc])*
            ///
            /// # Safety
            /// As of the function for C.
            #[unsafe(no_mangle)]
            pub unsafe extern "system" fn $jni(
                _: *mut JNIEnv,
                _: jclass,
                $($arg: jlong),*
            ) -> jlong {
                // SAFETY: the caller's promise is the same.
                unsafe { $c($($arg),*) }
            }
        )*
    };
}

// SAFETY of the calls below: each passes on the promise of the exported function.
exports! {
    /// The version of this interface.
    zj_interface, Java_zubilo_Native_version() = Ok(INTERFACE);
    /// Bytes of stack that the calling thread has left.
    zj_stack, Java_zubilo_Native_stack() = Ok(stack::left());
    /// Hands over the details of a failure and frees them.
    zj_failure, Java_zubilo_Native_failure(failure, out, cap) = {
        // SAFETY: the caller's promise.
        Ok(unsafe { error::take(failure, memory::room(out, cap)?) })
    };
    /// Opens a store.
    zj_open, Java_zubilo_Native_open(at, len) = {
        // SAFETY: the caller's promise.
        unsafe { calls::open(at, len) }
    };
    /// Closes a store.
    zj_close, Java_zubilo_Native_close(handle, sync) = calls::close_env(handle, sync);
    /// Operations on a store.
    zj_env, Java_zubilo_Native_env(handle, op, arg, a, a_len, out, cap) = {
        // SAFETY: the caller's promise.
        unsafe { calls::env_call(handle, op, arg, (a, a_len), (out, cap)) }
    };
    /// Begins a read transaction.
    zj_read, Java_zubilo_Native_read(handle) = calls::read_begin(handle);
    /// Ends a transaction without a commit.
    zj_end, Java_zubilo_Native_end(handle) = calls::end(handle);
    /// Begins the write transaction.
    zj_write, Java_zubilo_Native_write(handle, flags) = calls::write_begin(handle, flags);
    /// Commits or aborts the write transaction.
    zj_write_end, Java_zubilo_Native_writeEnd(handle, commit) = calls::write_end(handle, commit);
    /// Begins and ends nested levels.
    zj_nested, Java_zubilo_Native_nested(handle, op, depth) = calls::nested(handle, op, depth);
    /// Facts of a transaction.
    zj_txn, Java_zubilo_Native_txn(handle, op) = calls::txn_call(handle, op);
    /// Opens a table.
    zj_table, Java_zubilo_Native_table(handle, name, len, mode, bits) = {
        // SAFETY: the caller's promise.
        unsafe { calls::table(handle, name, len, mode, bits) }
    };
    /// Removes or renames a table.
    zj_names, Java_zubilo_Native_names(handle, op, name, len, to, to_len) = {
        // SAFETY: the caller's promise.
        unsafe { calls::names(handle, op, (name, len), (to, to_len)) }
    };
    /// Lists the tables.
    zj_tables, Java_zubilo_Native_tables(handle, out, cap) = {
        // SAFETY: the caller's promise.
        unsafe { calls::tables(handle, out, cap) }
    };
    /// Looks up a key and gives an address.
    zj_get, Java_zubilo_Native_get(handle, table, key, len, out) = {
        // SAFETY: the caller's promise.
        unsafe { calls::get(handle, table, (key, len), out) }
    };
    /// Looks up a key and copies its value.
    zj_get_copy, Java_zubilo_Native_getCopy(handle, table, key, len, out, cap) = {
        // SAFETY: the caller's promise.
        unsafe { calls::get_copy(handle, table, (key, len), (out, cap)) }
    };
    /// Looks up many keys.
    zj_get_many, Java_zubilo_Native_getMany(handle, table, count, keys, len, out, cap, copy) = {
        // SAFETY: the caller's promise.
        unsafe { calls::get_many(handle, table, count, (keys, len), (out, cap), copy) }
    };
    /// Reads records of a range.
    zj_scan, Java_zubilo_Native_scan(handle, table, flags, limit, request, len, out, cap) = {
        // SAFETY: the caller's promise.
        unsafe { calls::scan_call(handle, table, flags, limit, (request, len), (out, cap)) }
    };
    /// Reads values of a key.
    zj_values, Java_zubilo_Native_values(handle, table, flags, limit, request, len, out, cap) = {
        // SAFETY: the caller's promise.
        unsafe { calls::values_call(handle, table, flags, limit, (request, len), (out, cap)) }
    };
    /// Facts of a table.
    zj_query, Java_zubilo_Native_query(handle, table, op, key, len, value, value_len) = {
        // SAFETY: the caller's promise.
        unsafe { calls::query(handle, table, op, (key, len), (value, value_len)) }
    };
    /// Reads a record by its number.
    zj_nth, Java_zubilo_Native_nth(handle, table, op, n, key, len, out, cap) = {
        // SAFETY: the caller's promise.
        unsafe { calls::nth(handle, table, op, n, (key, len), (out, cap)) }
    };
    /// Counts or removes the records of a range.
    zj_range, Java_zubilo_Native_range(handle, table, op, request, len) = {
        // SAFETY: the caller's promise.
        unsafe { calls::range_call(handle, table, op, (request, len)) }
    };
    /// Figures of a table.
    zj_stats, Java_zubilo_Native_stats(handle, table, out, cap) = {
        // SAFETY: the caller's promise.
        unsafe { calls::stats(handle, table, out, cap) }
    };
    /// Changes a table.
    zj_change, Java_zubilo_Native_change(handle, table, op, key, len, value, value_len) = {
        // SAFETY: the caller's promise.
        unsafe { calls::change(handle, table, op, (key, len), (value, value_len)) }
    };
    /// Takes numbers of a sequence.
    zj_sequence, Java_zubilo_Native_sequence(handle, table, count) = {
        calls::sequence(handle, table, count)
    };
    /// Stores many records.
    zj_put_many, Java_zubilo_Native_putMany(handle, table, count, records, len) = {
        // SAFETY: the caller's promise.
        unsafe { calls::put_many(handle, table, count, (records, len)) }
    };
}

/// The address of a direct buffer, for JNI; the other way in knows it by itself.
///
/// # Safety
/// Called by the JVM.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_zubilo_Native_address(
    env: *mut JNIEnv,
    _: jclass,
    buffer: jobject,
) -> jlong {
    // SAFETY: the JVM passes its table of functions, and a buffer of this thread's.
    unsafe { ((**env).v1_4.GetDirectBufferAddress)(env, buffer) as jlong }
}

/// A direct buffer over bytes of the map, for those who ask for one on JDK 17. It does not keep the
/// transaction alive.
///
/// # Safety
/// Called by the JVM, with address and length of a value.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_zubilo_Native_buffer(
    env: *mut JNIEnv,
    _: jclass,
    at: jlong,
    len: jlong,
) -> jobject {
    // SAFETY: the JVM passes its table of functions.
    unsafe { ((**env).v1_4.NewDirectByteBuffer)(env, at as *mut _, len) }
}
