//! Where a binary looks for its libraries.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use std::fs;
use std::path::Path;

/// The folder `lib` beside the folder of the binary.
pub const BESIDE: &str = "$ORIGIN/../lib";

/// The binary's RUNPATH.
pub fn of(binary: &Path) -> Result<String> {
    let about = Call::new("readelf", [Path::new("--wide"), Path::new("--dynamic"), binary]);
    let about = about
        .read("cannot read the libraries of the binary")
        .map_err(|failure| failure.hint("install readelf (Debian, Ubuntu: apt install binutils)"))?;
    let line = about.lines().find(|line| line.contains("(RUNPATH)"));
    let path = line.and_then(|line| line.split_once('[')?.1.strip_suffix(']'));
    path.map(str::to_owned).ok_or_else(|| Failure::new("the binary has no RUNPATH").why(about))
}

/// Writes another RUNPATH in the place of the binary's own: linking again would take minutes, and would leave
/// `target/release/gavel-models` without its libtorch.
pub fn set(binary: &Path, path: &str) -> Result<()> {
    let old = of(binary)?;
    let mut bytes = fs::read(binary).map_err(|error| cannot("read", binary, &error))?;
    replace(&mut bytes, &old, path)?;
    fs::write(binary, bytes).map_err(|error| cannot("write", binary, &error))
}

/// Replaces the only string `old` that stands between two NULs with `new`, padded with NULs.
fn replace(bytes: &mut [u8], old: &str, new: &str) -> Result<()> {
    let wanted = [b"\0", old.as_bytes(), b"\0"].concat();
    let places: Vec<usize> =
        bytes.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted).map(|(at, _)| at + 1).collect();
    let [at] = places[..] else {
        let why = format!("{old:?} is in it {} times", places.len());
        return Err(Failure::new("cannot change the binary's RUNPATH").why(why));
    };
    if new.len() > old.len() {
        return Err(Failure::new(format!("cannot change the binary's RUNPATH from {old} to {new}, which is longer"))
            .hint("move libtorch to a folder with a longer path, and set LIBTORCH to it"));
    }
    let place = &mut bytes[at..at + old.len()];
    place.fill(0);
    place[..new.len()].copy_from_slice(new.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_path_takes_the_place_of_the_old_one() {
        let mut bytes = b"\0libc.so\0/home/ada/lib\0a /home/ada/lib b".to_vec();
        replace(&mut bytes, "/home/ada/lib", "$ORIGIN/lib").unwrap();
        assert_eq!(bytes, b"\0libc.so\0$ORIGIN/lib\0\0\0a /home/ada/lib b");
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        let two = b"\0/lib\0/lib\0";
        assert!(replace(&mut two.to_vec(), "/lib", "/l").unwrap_err().to_string().contains("2 times"));
        assert!(replace(&mut two.to_vec(), "/opt", "/l").unwrap_err().to_string().contains("0 times"));
        assert!(replace(&mut b"\0/lib\0".to_vec(), "/lib", "/longer").unwrap_err().to_string().contains("longer"));
    }
}
