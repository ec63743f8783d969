//! The possible states of a folder after a power cut, by a model of the disk. A
//! file has the content of its last sync, or nothing, or a part or all of its
//! present content. A folder has its names at the last sync, or its names at any
//! moment since. Files and folders are independent of each other, as file
//! systems promise no more.

use gavel_data::disk::{self, Operation};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The number that the file system knows a file or folder by.
type Inode = u64;
/// Names in a folder.
type Names = BTreeMap<OsString, Inode>;
/// Everything below a folder: the content of files, `None` for folders.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

enum Node {
    /// The content at the last sync.
    File { synced: Option<Vec<u8>>, handle: RefCell<File> },
    /// The names at the last sync, and after each change since.
    Folder { names: Vec<Names>, _handle: File },
}

/// Runs `work`. After each of its operations below `root`, and at its end,
/// gives `check` every folder that a power cut at that point could leave. Files
/// that were below `root` before count as synced. Returns the operations, and
/// how many folders were checked.
pub(crate) fn after_each_operation(
    root: &Path,
    check: impl Fn(&Path) + 'static,
    work: impl FnOnce(),
) -> (Vec<String>, usize) {
    let mut disk = Disk { root: root.to_owned(), nodes: HashMap::new() };
    disk.look();
    disk.sync_all();
    let seen = Rc::new(RefCell::new((disk, Vec::new(), HashSet::new())));
    let shared = seen.clone();
    let check = Rc::new(check);
    let (checked, root) = (check.clone(), root.to_owned());
    let watch = move |operation: &Operation| {
        let (disk, operations, trees) = &mut *shared.borrow_mut();
        disk.look();
        disk.apply(operation);
        operations.push(short(operation, &root));
        disk.check_each(trees, &*checked);
    };
    disk::watch(watch, work);
    let (disk, operations, trees) = &mut *seen.borrow_mut();
    disk.look();
    disk.check_each(trees, &*check);
    (std::mem::take(operations), trees.len())
}

fn short(operation: &Operation, root: &Path) -> String {
    let name = |path: &Path| match path.strip_prefix(root).unwrap_or(path).display().to_string() {
        empty if empty.is_empty() => ".".to_owned(),
        name => name,
    };
    match operation {
        Operation::Sync(path) => format!("sync {}", name(path)),
        Operation::SyncFolder(path) => format!("sync folder {}", name(path)),
        Operation::Rename(from, to) => format!("rename {} to {}", name(from), name(to)),
        Operation::Remove(path) => format!("remove {}", name(path)),
    }
}

struct Disk {
    root: PathBuf,
    nodes: HashMap<Inode, Node>,
}

impl Disk {
    /// Notes the present state.
    fn look(&mut self) {
        self.look_into(&self.root.clone());
    }

    fn look_into(&mut self, folder: &Path) {
        let mut now = Names::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            now.insert(path.file_name().unwrap().to_owned(), inode(&path));
            if path.is_dir() {
                self.look_into(&path);
            } else {
                // Held open, so that no other file gets its number once it is removed.
                let handle = || RefCell::new(File::open(&path).unwrap());
                self.nodes.entry(inode(&path)).or_insert_with(|| Node::File { synced: None, handle: handle() });
            }
        }
        let empty = || Node::Folder { names: vec![Names::new()], _handle: File::open(folder).unwrap() };
        match self.nodes.entry(inode(folder)).or_insert_with(empty) {
            Node::Folder { names, .. } if names.last() != Some(&now) => names.push(now),
            _ => {}
        }
    }

    fn apply(&mut self, operation: &Operation) {
        let (Operation::Sync(path) | Operation::SyncFolder(path)) = operation else { return };
        if path.starts_with(&self.root) {
            self.nodes.get_mut(&inode(path)).unwrap().sync();
        }
    }

    fn sync_all(&mut self) {
        self.nodes.values_mut().for_each(Node::sync);
    }

    /// Gives `check` each folder that a power cut now could leave, except those
    /// in `seen`.
    fn check_each(&self, seen: &mut HashSet<Tree>, check: &dyn Fn(&Path)) {
        for tree in self.outcomes() {
            if seen.insert(tree.clone()) {
                let folder = tempfile::tempdir().unwrap();
                for (path, content) in &tree {
                    let path = folder.path().join(path);
                    match content {
                        None => fs::create_dir(path).unwrap(),
                        Some(content) => fs::write(path, content).unwrap(),
                    }
                }
                check(folder.path());
            }
        }
    }

    fn outcomes(&self) -> Vec<Tree> {
        // Every combination of the names that unsynced folders may have.
        let mut choices: Vec<HashMap<Inode, usize>> = vec![HashMap::new()];
        for (inode, node) in &self.nodes {
            if let Node::Folder { names, .. } = node {
                let with = |choice: &HashMap<Inode, usize>, at| {
                    let mut choice = choice.clone();
                    choice.insert(*inode, at);
                    choice
                };
                choices = choices.iter().flat_map(|choice| (0..names.len()).map(move |at| with(choice, at))).collect();
            }
        }
        // The contents that unsynced files may have: all of them the same part, or one lost and the others whole.
        let unsynced = self.nodes.iter().filter(|(_, node)| node.is_unsynced_file()).map(|(inode, _)| *inode);
        let lost = unsynced.map(|one| Box::new(move |inode| if inode == one { Part::Synced } else { Part::All }) as _);
        let same = [Part::Synced, Part::Half, Part::All].map(|part| Box::new(move |_| part) as _);
        let contents: Vec<Box<dyn Fn(Inode) -> Part>> = same.into_iter().chain(lost).collect();
        let mut outcomes = Vec::new();
        for choice in &choices {
            for content in &contents {
                let mut tree = Tree::new();
                self.build(inode(&self.root), Path::new(""), choice, content, &mut tree);
                outcomes.push(tree);
            }
        }
        outcomes
    }

    fn build(
        &self,
        folder: Inode,
        path: &Path,
        choice: &HashMap<Inode, usize>,
        content: &dyn Fn(Inode) -> Part,
        tree: &mut Tree,
    ) {
        let Node::Folder { names, .. } = &self.nodes[&folder] else { panic!("{} is a file", path.display()) };
        for (name, inode) in &names[choice[&folder]] {
            let path = path.join(name);
            match &self.nodes[inode] {
                file @ Node::File { .. } => {
                    tree.insert(path, Some(file.content(content(*inode))));
                }
                Node::Folder { .. } => {
                    tree.insert(path.clone(), None);
                    self.build(*inode, &path, choice, content, tree);
                }
            }
        }
    }
}

/// What remains of an unsynced file.
#[derive(Clone, Copy)]
enum Part {
    Synced,
    Half,
    All,
}

impl Node {
    fn sync(&mut self) {
        let now = match self {
            Self::File { .. } => self.content(Part::All),
            Self::Folder { names, .. } => {
                names.drain(..names.len() - 1);
                return;
            }
        };
        if let Self::File { synced, .. } = self {
            *synced = Some(now);
        }
    }

    fn is_unsynced_file(&self) -> bool {
        matches!(self, Self::File { synced, .. } if synced.as_ref() != Some(&self.content(Part::All)))
    }

    fn content(&self, part: Part) -> Vec<u8> {
        let Self::File { synced, handle } = self else { panic!("a folder has no content") };
        let mut now = Vec::new();
        let mut handle = handle.borrow_mut();
        handle.seek(SeekFrom::Start(0)).unwrap();
        handle.read_to_end(&mut now).unwrap();
        match part {
            Part::All => now,
            Part::Synced => synced.clone().unwrap_or_default(),
            // The synced part stays if more was added behind it.
            Part::Half => {
                let synced = synced.as_ref().filter(|synced| now.starts_with(synced)).map_or(0, Vec::len);
                now.truncate(synced + (now.len() - synced) / 2);
                now
            }
        }
    }
}

fn inode(path: &Path) -> Inode {
    fs::symlink_metadata(path).unwrap().ino()
}

#[test]
fn a_wrong_order_is_found() {
    type Write = fn(&Path) -> std::io::Result<()>;
    let rename = |root: &Path| disk::rename(&root.join("new"), &root.join("file"));
    let unsynced: Write = |root| fs::write(root.join("new"), "the new one");
    let synced: Write = |root| {
        fs::write(root.join("new"), "the new one")?;
        disk::sync(&File::open(root.join("new"))?, &root.join("new"))
    };
    for (write, is_safe) in [(unsynced, false), (synced, true)] {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "the old one").unwrap();
        let found = Rc::new(RefCell::new(HashSet::new()));
        let seen = found.clone();
        let check = move |folder: &Path| {
            seen.borrow_mut().insert(fs::read_to_string(folder.join("file")).unwrap());
        };
        after_each_operation(root.path(), check, || {
            write(root.path()).unwrap();
            rename(root.path()).unwrap();
        });
        let expected = HashSet::from(["the old one".to_owned(), "the new one".to_owned()]);
        assert_eq!(*found.borrow() == expected, is_safe, "{found:?}");
    }
}
