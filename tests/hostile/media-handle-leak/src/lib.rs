//! Reads the prompt forever and never releases its attachments.

use attack::{ContentPart, Reference, Sample};

fn attack(sample: &Sample, _: &Reference) -> f64 {
    loop {
        for part in sample.prompt().into_iter().flat_map(|message| message.content) {
            if let ContentPart::Media(media) = part {
                std::mem::forget(media);
            }
        }
    }
}

attack::on_score!(attack);
