use super::*;
use std::path::PathBuf;

const START: &str = r#"{"id":""#;

fn line(name: &str, text: &str) -> String {
    format!("{START}{name}\",\"text\":\"{text}\"}}\n")
}

struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new(text: &str) -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap() };
        case.write(text);
        case
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data.jsonl")
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join("index/data/data.index")
    }

    fn write(&self, text: &str) {
        fs::write(self.data(), text).unwrap();
    }

    fn add(&self, text: &str) {
        fs::OpenOptions::new().append(true).open(self.data()).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn index(&self) -> LineIndex {
        LineIndex::of(&self.data(), &self.kept(), START).unwrap()
    }

    /// The texts of the lines with a name, read by way of the index.
    fn texts(&self, index: &LineIndex, name: &str) -> Vec<String> {
        let text = fs::read(self.data()).unwrap();
        let places = index.find(name).unwrap();
        let at = |place: &Place| {
            let line = text[place.offset as usize..].split(|byte| *byte == b'\n').next().unwrap();
            assert_eq!(
                text[..place.offset as usize].iter().filter(|byte| **byte == b'\n').count() as u64 + 1,
                place.line
            );
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            assert_eq!(line["id"], name);
            line["text"].as_str().unwrap().to_owned()
        };
        places.iter().map(at).collect()
    }
}

/// Lines that make a file long enough for its index to be kept.
fn many(prefix: &str) -> String {
    (0..KEPT_FROM / 500).map(|number| line(&format!("{prefix}{number}"), &"x".repeat(500))).collect()
}

#[test]
fn each_line_is_found_by_its_name_and_by_its_number() {
    let text = [line("a", "1"), line("b", "2"), line("b", "3"), "damaged\n".into(), line("a", "4"), line("c", "5")];
    let case = Case::new(&(text.concat() + &line("d", "cut off").replace('\n', "")));
    let index = case.index();
    assert_eq!(case.texts(&index, "a"), ["1", "4"]);
    assert_eq!(case.texts(&index, "b"), ["2"], "the first of those that follow each other");
    assert_eq!(case.texts(&index, "c"), ["5"]);
    assert!(case.texts(&index, "d").is_empty() && case.texts(&index, "").is_empty());
    assert_eq!(index.count(), 4);
    let lines: Vec<u64> = (0..4).map(|number| index.nth(number).unwrap().unwrap().line).collect();
    assert_eq!((lines, index.nth(4).unwrap()), (vec![1, 2, 5, 6], None));
    assert!(!case.kept().exists(), "a short file needs no index");
    assert_eq!(Case::new("").index().count(), 0);
    assert!(LineIndex::of(&case.folder.path().join("none"), &case.kept(), START).is_err());
}

#[test]
fn lines_that_are_added_are_found_without_reading_those_before() {
    let case = Case::new(&(many("m") + &line("a", "1")));
    assert_eq!(case.texts(&case.index(), "a"), ["1"]);
    let first = fs::read(case.kept()).unwrap();
    // A line that is being written, and then is whole.
    let whole = line("b", "2");
    case.add(&whole[..9]);
    assert!(case.texts(&case.index(), "b").is_empty());
    case.add(&whole[9..]);
    case.add(&line("a", "3"));
    let index = case.index();
    assert_eq!(
        (case.texts(&index, "a"), case.texts(&index, "b")),
        (vec!["1".into(), "3".into()], vec!["2".to_owned()])
    );
    assert_eq!(fs::read(case.kept()).unwrap(), first, "it is not written again for a few lines");
    // The lines that the index has are not read again: their names are from the index.
    let mut damaged = fs::read(case.data()).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 600].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b'#');
    fs::write(case.data(), damaged).unwrap();
    case.add(&many("n"));
    let index = case.index();
    assert_eq!(case.texts(&index, "n7").len(), 1);
    assert_ne!(fs::read(case.kept()).unwrap(), first);
    let count = 2 * (KEPT_FROM / 500) + 3;
    assert_eq!((index.count(), case.index().count()), (count, count));
}

#[test]
fn an_index_that_does_not_fit_its_file_is_made_again() {
    let case = Case::new(&(many("m") + &line("a", "1")));
    case.index();
    let kept = fs::read(case.kept()).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut index = kept.clone();
        index[at..at + bytes.len()].copy_from_slice(bytes);
        index
    };
    let count = u64::from_le_bytes(kept[32..40].try_into().unwrap());
    let (start, ranks) = (HEADER as usize, (HEADER + count * ENTRY) as usize);
    // An index whose hash fits, as somebody could make it.
    let forged = |at: usize, bytes: &[u8]| {
        let mut index = with(at, bytes);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&index[..HEADER_START]).update(&index[start..]);
        index[HEADER_START..start].copy_from_slice(&hash_of(&hasher));
        assert!(index != kept);
        index
    };
    let flipped = |at: usize| with(at, &[kept[at] ^ 1]);
    let last = ranks - ENTRY as usize;
    let broken = [
        with(start, &vec![0; kept.len() - start]),
        with(start, &vec![0; ranks - start]),
        with(ranks, &vec![0xff; (count * RANK) as usize]),
        flipped(24),
        flipped(HEADER_START),
        flipped(start),
        flipped(start + 8),
        flipped(start + 16),
        flipped(ranks),
        flipped(kept.len() - 1),
        forged(24, &u64::MAX.to_le_bytes()),
        forged(last + 8, &u64::MAX.to_le_bytes()),
        forged(last + 8, &0_u64.to_le_bytes()),
        forged(last + 16, &u64::MAX.to_le_bytes()),
        forged(last + 16, &0_u64.to_le_bytes()),
        forged(ranks, &u32::MAX.to_le_bytes()),
        Vec::new(),
        kept[..kept.len() - 1].to_vec(),
        [&kept[..], b"x"].concat(),
        vec![0; kept.len()],
        with(8, &2_u64.to_le_bytes()),
        with(16, &u64::MAX.to_le_bytes()),
        with(16, &9_u64.to_le_bytes()),
        with(32, &u64::MAX.to_le_bytes()),
        with(32, &(u64::MAX / 28).to_le_bytes()),
        with(40, &[1; 16]),
    ];
    for index in broken {
        fs::write(case.kept(), &index).unwrap();
        assert_eq!(case.texts(&case.index(), "a"), ["1"]);
        assert_eq!(fs::read(case.kept()).unwrap(), kept);
    }
    // Another file in its place, longer, shorter and as long.
    for text in [many("m") + &line("b", "2") + &line("a", "3"), many("o"), many("m") + &line("b", "2")] {
        case.write(&text);
        let found = case.index();
        assert_eq!(case.texts(&found, "a").len(), text.matches(r#""a""#).count());
        assert_eq!(case.texts(&found, "b").len(), text.matches(r#""b""#).count());
    }
}

#[test]
fn the_folder_of_a_run_that_was_removed_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    assert!(keep(&run.join("index/tasks/tasks.jsonl.index"), b"index").is_err());
    assert!(!run.exists());
    fs::create_dir(&run).unwrap();
    keep(&run.join("index/tasks/tasks.jsonl.index"), b"index").unwrap();
    assert_eq!(fs::read(run.join("index/tasks/tasks.jsonl.index")).unwrap(), b"index");
}

#[test]
fn a_folder_that_cannot_have_an_index_is_read_without_it() {
    let elsewhere = tempfile::tempdir().unwrap();
    for place in ["index", "index/data"] {
        let case = Case::new(&(many("m") + &line("a", "1")));
        let path = case.folder.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
        assert_eq!(case.texts(&case.index(), "a"), ["1"]);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "nothing is written through {place}");
    }
    let case = Case::new(&(many("m") + &line("a", "1")));
    fs::write(case.folder.path().join("index"), "").unwrap();
    assert_eq!(case.texts(&case.index(), "a"), ["1"]);
}

#[test]
fn many_readers_and_a_writer_do_not_disturb_each_other() {
    let case = Case::new(&(many("m") + &line("a", "1")));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let found = case.index();
                    assert_eq!(case.texts(&found, "a"), ["1"]);
                    assert_eq!(case.texts(&found, "m3").len(), 1);
                }
            });
        }
        for number in 0..20 {
            case.add(&many(&format!("{number}.")));
        }
    });
    assert_eq!(case.texts(&case.index(), "19.7").len(), 1);
    let left = fs::read_dir(case.kept().parent().unwrap()).unwrap();
    assert_eq!(left.count(), 1, "nothing is left beside the index");
}
