//! libFuzzer over the target `responses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    gavel_fuzz::RESPONSES.check(input);
});
