//! The targets of attacks: samples, a folder that is granted, and a secret beside
//! it.

use gavel_data::{ContentPart, Media, Message, Role, Sample, Task, Trajectory};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

pub struct Ground(TempDir);

impl Ground {
    /// `granted/` with a file and three ways out, and `secret.txt` beside it.
    pub fn new() -> Self {
        let ground = Self(tempfile::tempdir().unwrap());
        let (folder, granted) = (ground.0.path(), ground.granted());
        std::fs::create_dir(&granted).unwrap();
        std::fs::write(folder.join("secret.txt"), "secret").unwrap();
        std::fs::write(granted.join("inside.txt"), "inside").unwrap();
        symlink(folder.join("secret.txt"), granted.join("escape")).unwrap();
        symlink("../secret.txt", granted.join("escape-relative")).unwrap();
        symlink(folder, granted.join("escape-folder")).unwrap();
        ground
    }

    pub fn granted(&self) -> PathBuf {
        self.0.path().join("granted")
    }

    /// Fails if an attack changed something.
    pub fn assert_untouched(&self) {
        let read = |name: &str| std::fs::read_to_string(self.0.path().join(name)).unwrap();
        assert_eq!((read("secret.txt"), read("granted/inside.txt")), ("secret".into(), "inside".into()));
        let mut names: Vec<_> =
            std::fs::read_dir(self.granted()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["escape", "escape-folder", "escape-relative", "inside.txt"]);
        assert_eq!(std::fs::read_dir(self.0.path()).unwrap().count(), 2);
    }

    /// A sample with an attachment in its prompt, and this response.
    pub fn sample(&self, response: &str) -> Arc<Sample> {
        self.sample_with(response, 4)
    }

    /// A sample whose attachment has this many bytes.
    pub fn sample_with(&self, response: &str, attachment: usize) -> Arc<Sample> {
        let bytes: Vec<u8> = (1..=attachment).map(|byte| byte as u8).collect();
        let image = Value::from(ContentPart::Media(Media { media_type: "image/png".into(), bytes: bytes.into() }));
        let image = &image["image_url"]["url"];
        let prompt = json!([{"role": "user", "content": ["look", {"type": "image_url", "image_url": {"url": image}}]}]);
        let row = json!({"prompt": prompt, "data_source": "digits", "answer": "1 3"});
        let task = Task::from_row(serde_json::from_value(row).unwrap(), 7, "train").unwrap();
        let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, response)]);
        Arc::new(Sample::new(Arc::new(task), 2, vec![trajectory]))
    }
}
