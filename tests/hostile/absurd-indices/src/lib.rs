//! Asks the host for items far past every end.

use attack::{ContentPart, Reference, Sample};

fn attack(sample: &Sample, reference: &Reference) -> bool {
    let trajectory = sample.trajectories().next();
    let nothing = sample.trajectory(u32::MAX).is_none()
        && trajectory.is_some_and(|trajectory| trajectory.message(u32::MAX).is_none())
        && reference.column("\0").is_none();
    let media = sample.prompt().into_iter().flat_map(|message| message.content).find_map(|part| match part {
        ContentPart::Media(media) => Some(media),
        ContentPart::Text(_) => None,
    });
    let clamped = media.is_some_and(|media| {
        media.read(u64::MAX, u32::MAX).is_empty()
            && media.read(media.size() - 1, u32::MAX).len() == 1
            && media.read(0, u32::MAX).len() as u64 == media.size()
    });
    nothing && clamped
}

attack::on_score!(attack);
