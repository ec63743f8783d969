//! libFuzzer over the target `components`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    gavel_fuzz::COMPONENTS.check(input);
});
