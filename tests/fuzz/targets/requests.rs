//! libFuzzer over the target `requests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    gavel_fuzz::REQUESTS.check(input);
});
