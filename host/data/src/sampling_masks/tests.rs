use super::*;
use crate::seed::uniform;

/// `count` masks of a vocabulary, of all forms and sizes.
fn masks(seed: u64, count: u64, vocabulary: usize) -> Vec<SamplingMask> {
    let of = |number: u64| {
        let share = match number % 5 {
            0 => 1.0,
            1 => 1.0 / vocabulary as f64,
            2 => 0.99,
            _ => uniform(seed, number),
        };
        let random = |id: &u32| uniform(seed ^ ((number + 1) << 20), u64::from(*id)) < share;
        let kept: Vec<u32> = (0..vocabulary as u32).filter(random).collect();
        if kept.is_empty() {
            SamplingMask::Only(vec![number as u32 % vocabulary as u32])
        } else {
            SamplingMask::of(&kept, vocabulary)
        }
    };
    (0..count).map(of).collect()
}

fn pushed(masks: &[SamplingMask]) -> SamplingMasks {
    let mut all = SamplingMasks::new();
    masks.iter().for_each(|mask| all.push(mask));
    all
}

fn read(masks: &SamplingMasks) -> Vec<SamplingMask> {
    (0..masks.len()).map(|position| masks.get(position)).collect()
}

#[test]
fn the_shorter_list_is_kept() {
    let of = |kept: &[u32]| SamplingMask::of(kept, 6);
    assert_eq!(of(&[0, 1, 2, 3, 4, 5]), SamplingMask::All);
    assert_eq!(of(&[1, 3, 5]), SamplingMask::Only(vec![1, 3, 5]));
    assert_eq!(of(&[0, 1, 3, 5]), SamplingMask::Except(vec![2, 4]));
    for mask in [of(&[1, 3]), of(&[0, 1, 3, 5]), SamplingMask::All] {
        let found: Vec<u32> = (0..6).filter(|token| mask.contains(*token)).collect();
        assert_eq!(of(&found), mask);
    }
}

#[test]
fn masks_come_back_from_memory_and_from_text() {
    for (seed, vocabulary) in [(1, 2), (2, 9), (3, 300), (4, 5000)] {
        let given = masks(seed, 60, vocabulary);
        let kept = pushed(&given);
        assert_eq!(kept.len(), given.len());
        assert_eq!(read(&kept), given, "{vocabulary}");
        assert_eq!(kept.get(given.len()), SamplingMask::All);
        assert_eq!(kept.cuts(), given.iter().any(|mask| *mask != SamplingMask::All));
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<SamplingMasks>(&text).unwrap(), kept, "{text}");
    }
}

#[test]
fn the_largest_id_comes_back() {
    for mask in [SamplingMask::Only(vec![0, u32::MAX]), SamplingMask::Except(vec![u32::MAX - 1])] {
        let kept = pushed(std::slice::from_ref(&mask));
        assert_eq!(SamplingMasks::from_text(&kept.to_text()).unwrap().get(0), mask);
    }
}

#[test]
fn ids_in_another_order_are_put_in_order() {
    let kept = pushed(&[SamplingMask::Only(vec![7, 3, 7, 5])]);
    assert_eq!(kept.get(0), SamplingMask::Only(vec![3, 5, 7]));
}

#[test]
fn parts_are_the_parts_of_the_whole() {
    let given = masks(5, 40, 50);
    let whole = pushed(&given);
    for len in 0..=given.len() + 1 {
        let mut first = whole.clone();
        first.truncate(len);
        let (before, after) = given.split_at(len.min(given.len()));
        assert_eq!(first, pushed(before));
        first.append(&pushed(after));
        assert_eq!(first, whole);
    }
    let mut padded = pushed(&given[..3]);
    padded.pad(5);
    padded.pad(2);
    padded.append(&pushed(&given[3..6]));
    let all = [&given[..3], &[SamplingMask::All, SamplingMask::All], &given[3..6]].concat();
    assert_eq!(padded, pushed(&all));
}

#[test]
fn memory_is_bounded() {
    let mut uncut = pushed(&vec![SamplingMask::All; 1000]);
    assert_eq!((uncut.bytes(), uncut.to_text().as_str()), (size_of::<SamplingMasks>(), "6Ac="));
    uncut.push(&SamplingMask::Except(Vec::new()));
    assert!(!uncut.cuts());
    let vocabulary = 4000;
    for of in masks(6, 50, vocabulary) {
        let one = pushed(std::slice::from_ref(&of));
        let list = one.masks.len() + one.cuts.len() * size_of::<Cut>();
        assert!(list <= vocabulary / 8 + 1 + CUT_BYTES, "{list} bytes");
        // Few tokens have their gaps.
        let few = SamplingMask::Only(vec![5, 300, 3999]);
        assert_eq!(pushed(std::slice::from_ref(&few)).masks.len(), 2 + 1 + 2 + 2);
    }
}

#[test]
fn damaged_text_is_refused() {
    let text = |bytes: &[u8]| SamplingMasks::from_text(&STANDARD.encode(bytes));
    assert_eq!(text(&[3, 1, 0, 2, 5, 0]).unwrap().get(1), SamplingMask::Only(vec![5, 6]));
    for (bytes, says) in [
        (&[][..], "the number of sampling masks ends too early"),
        (&[0xff; 11], "the number of sampling masks has a number of more than 64 bits"),
        (&[3, 3, 0, 1, 5], "sampling mask 0 is for no position of 3"),
        (&[3, 1, 0, 1, 5, 1, 0, 1, 5], "sampling mask 1 is for no position of 3"),
        (&[3, 1], "sampling mask 0 ends too early"),
        (&[3, 1, 0, 0], "sampling mask 0 has no token ids"),
        (&[3, 1, 4, 1, 5], "sampling mask 0 has an unknown form"),
        (&[3, 1, 0, 2, 5], "sampling mask 0 ends too early"),
        (&[3, 1, 0, 2, 5, 0x80], "sampling mask 0 ends too early"),
        (&[3, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 5], "sampling mask 0 ends too early"),
        (&[3, 1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0], "sampling mask 0 has a token id of more than 32 bits"),
        (&[3, 1, 2, 2, 1, 0], "sampling mask 0 has bits beyond its token ids"),
    ] {
        assert_eq!(text(bytes).unwrap_err(), says, "{bytes:?}");
    }
    let error = serde_json::from_str::<SamplingMasks>("\"?\"").unwrap_err().to_string();
    assert!(error.starts_with("the base64 of sampling masks is broken: "), "{error}");
}

#[test]
fn no_damage_is_read_beyond_its_end() {
    let whole = STANDARD.decode(pushed(&masks(7, 30, 200)).to_text()).unwrap();
    for end in 0..whole.len() {
        let part = SamplingMasks::from_text(&STANDARD.encode(&whole[..end]));
        assert!(part.is_err() || part.is_ok_and(|part| part.to_text().len() <= whole.len() * 2));
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            let Ok(found) = SamplingMasks::from_text(&STANDARD.encode(&damaged)) else { continue };
            // What is accepted is in order and comes back.
            for position in 0..found.len().min(40) {
                let (SamplingMask::Only(ids) | SamplingMask::Except(ids)) = found.get(position) else { continue };
                assert!(!ids.is_empty() && ids.is_sorted_by(|one, other| one < other));
            }
            assert_eq!(SamplingMasks::from_text(&found.to_text()).unwrap(), found);
        }
    }
}
