//! The name that programs look for at run time, and the handlers of the small build.

/// The standard library's symbols, told by `cargo xtask dropin`, and what takes their place.
const HANDLERS: [(&str, &str); 2] = [
    ("ZUBILO_PANIC_SYMBOL", "zubilo_panicked"),
    ("ZUBILO_OUT_OF_MEMORY_SYMBOL", "zubilo_out_of_memory"),
];

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblmdb.so.0");
    println!("cargo:rustc-check-cfg=cfg(small_panics)");
    println!("cargo:rerun-if-changed=build.rs");
    for (variable, handler) in HANDLERS {
        println!("cargo:rerun-if-env-changed={variable}");
        if let Ok(symbol) = std::env::var(variable) {
            println!("cargo:rustc-cfg=small_panics");
            println!("cargo:rustc-cdylib-link-arg=-Wl,--defsym={symbol}={handler}");
        }
    }
}
