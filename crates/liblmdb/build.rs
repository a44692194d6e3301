//! The name that programs look for at run time.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblmdb.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
