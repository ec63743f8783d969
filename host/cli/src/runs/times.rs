//! Times in few letters.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since a moment, in seconds since 1970: `4m`. A moment in the future is now.
pub fn since(moment: f64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
    short(now - moment)
}

/// A number of seconds: `12s`, `4m`, `5h`, `3d`.
pub fn short(seconds: f64) -> String {
    match seconds.max(0.0) as u64 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// A moment, in seconds since 1970, as RFC 3339; `None` if there is no such moment.
pub fn date(moment: f64) -> Option<String> {
    let since = Duration::try_from_secs_f64(moment).ok()?;
    // The last moment that humantime can write is the end of the year 9999.
    let moment = UNIX_EPOCH.checked_add(since).filter(|_| moment < 253_402_300_800.0)?;
    Some(humantime::format_rfc3339_seconds(moment).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let found = [-5.0, 0.9, 59.9, 60.0, 3599.0, 3600.0, 172_799.0, 172_800.0, f64::NAN].map(short);
        assert_eq!(found, ["0s", "0s", "59s", "1m", "59m", "1h", "47h", "2d", "0s"]);
    }

    #[test]
    fn a_moment_that_is_none_has_no_date() {
        assert_eq!(date(1_796_083_497.26).as_deref(), Some("2026-12-01T00:04:57Z"));
        assert_eq!([-1.0, f64::NAN, 1e12, 1e300].map(date), [const { None }; 4]);
    }
}
