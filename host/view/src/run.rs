//! A run that is shown.

use crate::build::read_file;
use crate::curves::Curves;
use crate::error::Result;
use crate::index::{Index, SharedIndex, Stamp};
use crate::text::Texts;
use crate::vocabulary::Vocabulary;
use gavel_runs::{Overview, RunError, SampleFile, sample_files};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLockReadGuard, Weak};
use std::thread;
use std::time::Duration;

/// The time between two looks into the folder of a run.
const PERIOD: Duration = Duration::from_secs(1);

/// A run, and what was read of it.
pub(crate) struct ViewedRun {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    curves: Mutex<Curves>,
    /// The rows of its trajectories.
    pub(crate) shared: SharedIndex,
    follower: Once,
    /// Held while files are added, so that none is added twice.
    updating: Mutex<()>,
    pub(crate) texts: Texts,
    pub(crate) vocabulary: Vocabulary,
}

impl ViewedRun {
    pub(crate) fn new(path: PathBuf, name: String) -> Arc<Self> {
        Arc::new(Self {
            curves: Mutex::new(Curves::new(&path)),
            shared: SharedIndex::default(),
            follower: Once::new(),
            updating: Mutex::default(),
            texts: Texts::default(),
            vocabulary: Vocabulary::default(),
            path,
            name,
        })
    }

    /// How far it is.
    pub(crate) fn overview(&self) -> Result<Overview> {
        Ok(Overview::read(&self.path)?)
    }

    /// Its metrics, read up to now.
    pub(crate) fn curves(&self) -> Result<MutexGuard<'_, Curves>> {
        let mut curves = self.curves.lock().unwrap_or_else(PoisonError::into_inner);
        curves.update()?;
        Ok(curves)
    }

    /// The rows of its trajectories so far.
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.shared.read()
    }

    /// Starts the thread that makes the index, if there is none yet. It ends with the run's last user.
    pub(crate) fn follow(self: &Arc<Self>) {
        self.follower.call_once(|| {
            let run = Arc::downgrade(self);
            let started = thread::Builder::new().name("gavel-view".into()).spawn(move || follow(&run));
            if let Err(error) = started {
                self.shared.change(|index| index.error = Some(format!("cannot start a thread for the index: {error}")));
            }
        });
    }

    /// Reads the files that are not in the index yet.
    pub(crate) fn update(&self) {
        let _one_at_a_time = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match sample_files(&self.path) {
            Ok(files) => files,
            Err(error) => return self.shared.change(|index| index.error = Some(error.to_string())),
        };
        let missing = self.shared.change(|index| index.missing(&files));
        self.shared.change(|index| index.error = None);
        for file in missing {
            if let Err((stamp, source)) = self.add(&file) {
                let error = RunError::Io { action: "read", path: file.path.clone(), source }.to_string();
                self.shared.change(|index| index.skip(&file, stamp, error));
            }
        }
    }

    fn add(&self, file: &SampleFile) -> std::result::Result<(), (Option<Stamp>, std::io::Error)> {
        let stamp = Stamp::of(&file.path).map_err(|error| (None, error))?;
        let read = read_file(file).map_err(|error| (Some(stamp), error))?;
        self.shared.change(|index| index.add(file, stamp, read));
        Ok(())
    }
}

fn follow(run: &Weak<ViewedRun>) {
    while let Some(run) = run.upgrade() {
        run.update();
        drop(run);
        thread::sleep(PERIOD);
    }
}

/// The name of a run: the end of its path.
pub(crate) fn name_of(path: &Path) -> String {
    let whole = path.canonicalize();
    let path = whole.as_deref().unwrap_or(path);
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
