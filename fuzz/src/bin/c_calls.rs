//! The fuzzer of the target `c_calls` in `crates/fuzz-targets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (fuzz_targets::target("c_calls").run)(data));
