use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn read(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<ConfigFile, ConfigFileError>) {
    let folder = folder(files);
    let read = ConfigFile::read(&folder.path().join("run.toml"));
    (folder, read)
}

#[test]
fn a_file_comes_before_what_it_includes() {
    let (folder, read) = read(&[
        (
            "run.toml",
            "include = ['conf/base.toml', 'fast.toml']\nseed = 3\n[train]\nsteps = 9\n[[reward]]\nname = 'b'\nweight = 0.5\n[[reward]]\nname = 'c'",
        ),
        ("fast.toml", "seed = 2\nlist = [4]\n[train]\nsteps = 2\nrate = 0.1"),
        (
            "conf/base.toml",
            "include = 'model.toml'\nseed = 1\nlist = [1, 2]\n[[reward]]\nname = 'a'\n[[reward]]\nname = 'b'\npath = 'b.wasm'\nweight = 2",
        ),
        ("conf/model.toml", "[model]\npath = 'm'\n[train]\nsteps = 1\nkeep = true"),
    ]);
    let read = read.unwrap();
    let expected: Table = "seed = 3\nlist = [4]\n[model]\npath = 'm'\n[train]\nsteps = 9\nrate = 0.1\nkeep = true\n[[reward]]\nname = 'a'\n[[reward]]\nname = 'b'\npath = 'b.wasm'\nweight = 0.5\n[[reward]]\nname = 'c'".parse().unwrap();
    assert_eq!(read.table, expected);
    for (key, file) in [
        ("seed", "run.toml"),
        ("train.steps", "run.toml"),
        ("train.rate", "fast.toml"),
        ("train.keep", "conf/model.toml"),
        ("train.none", "run.toml"),
        ("list[0]", "fast.toml"),
        ("reward.a.name", "conf/base.toml"),
        ("reward.b.path", "conf/base.toml"),
        ("reward.b.weight", "run.toml"),
        ("reward.c", "run.toml"),
        ("model.device", "conf/model.toml"),
        ("nothing", "run.toml"),
    ] {
        assert_eq!(read.file_of(key), folder.path().join(file), "{key}");
    }
}

#[test]
fn what_is_no_table_replaces() {
    let (folder, read) = read(&[
        ("run.toml", "include = 'base.toml'\nreward = []\na = 1\nb = {x = 1}\nc = [{name = 'x'}]"),
        ("base.toml", "a = {x = 1}\nb = 1\nc = [1]\n[[reward]]\nname = 'a'"),
    ]);
    let read = read.unwrap();
    assert_eq!(read.table, "reward = []\na = 1\nb = {x = 1}\nc = [{name = 'x'}]".parse().unwrap());
    assert_eq!(read.file_of("reward.a"), folder.path().join("run.toml"));
}

#[test]
fn a_name_that_one_file_has_twice_stays_twice() {
    let (_folder, read) = read(&[
        ("run.toml", "include = 'base.toml'\na = [{name = 'x', n = 1}, {name = 'x', n = 2}]"),
        ("base.toml", "a = [{name = 'x', m = 0}]"),
    ]);
    assert_eq!(read.unwrap().table, "a = [{name = 'x', m = 0, n = 1}, {name = 'x', n = 2}]".parse().unwrap());
}

#[test]
fn two_files_may_include_a_third_one() {
    let (_folder, read) = read(&[
        ("run.toml", "include = ['a.toml', 'b.toml']"),
        ("a.toml", "include = 'c.toml'\nx = 1"),
        ("b.toml", "include = 'c.toml'"),
        ("c.toml", "x = 2"),
    ]);
    assert_eq!(read.unwrap().table, "x = 2".parse().unwrap());
}

#[test]
fn mistakes_name_the_files_that_lead_there() {
    for (files, expected) in [
        (
            &[("run.toml", "include = 'a.toml'"), ("a.toml", "include = 'b/c.toml'")][..],
            "cannot read the configuration b/c.toml: No such file or directory (os error 2); it is included by run.toml -> a.toml",
        ),
        (
            &[("run.toml", "include = 'a.toml'"), ("a.toml", "include = 'b/../run.toml'"), ("b/x", "")],
            "a.toml: include: the files include each other: run.toml -> a.toml -> b/../run.toml\nhint: ",
        ),
        (
            &[("run.toml", "include = 'run.toml'")],
            "run.toml: include: the files include each other: run.toml -> run.toml\n",
        ),
        (
            &[("run.toml", "include = ['a.toml', 3]"), ("a.toml", "")],
            "run.toml: include: expected a path or a list of paths, found 3",
        ),
        (&[("run.toml", "include = 'a.toml'"), ("a.toml", "x = ")], "a.toml: TOML parse error at line 1, column 5"),
        (&[], "cannot read the configuration run.toml: No such file or directory (os error 2)"),
    ] {
        let (folder, read) = read(files);
        let error = read.unwrap_err().to_string().replace(&format!("{}/", folder.path().display()), "");
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn files_are_bounded_in_number_and_in_size() {
    let next = |at: usize, times: usize| {
        let next = format!("'{}.toml', ", at + 1).repeat(times);
        (format!("{at}.toml"), format!("include = [{next}]"))
    };
    let refused = |files: Vec<(String, String)>| {
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (folder, read) = read(&files);
        read.unwrap_err().to_string().replace(&format!("{}/", folder.path().display()), "")
    };
    // Each includes the next one twice.
    let mut files: Vec<_> = (0..30).map(|at| next(at, 2)).collect();
    files.extend([("30.toml".to_owned(), String::new()), ("run.toml".to_owned(), "include = '0.toml'".to_owned())]);
    let error = refused(files);
    assert!(error.contains(".toml: include: the files of the configuration include more than 1024 in all"), "{error}");
    // Together with the file that includes it.
    let long = format!("# {}", "x".repeat(MOST_BYTES as usize - 3));
    let error = refused(vec![("run.toml".into(), "include = 'a.toml'".into()), ("a.toml".into(), long.clone())]);
    let says = "cannot read the configuration a.toml: the configuration has more than 4194304 bytes with it; it is included by run.toml";
    assert_eq!(error, says);
    let error = refused(vec![("run.toml".into(), long + "xx")]);
    assert_eq!(error, "cannot read the configuration run.toml: it has more than 4194304 bytes");
}

#[test]
fn a_pipe_is_read_once_and_a_device_not_to_its_end() {
    let (folder, read) = read(&[("run.toml", "include = 'zero.toml'")]);
    assert!(read.is_err());
    let path = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("/dev/zero", path("zero.toml")).unwrap();
    let error = |name: &str| ConfigFile::read(&path(name)).unwrap_err().to_string();
    assert!(
        error("run.toml").contains("zero.toml: it is not a regular file; it is included by "),
        "{}",
        error("run.toml")
    );
    assert!(error("zero.toml").ends_with("zero.toml: it has more than 4194304 bytes"), "{}", error("zero.toml"));

    let pipe = path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::write(path("piped.toml"), "include = 'pipe'").unwrap();
    assert!(error("piped.toml").contains("pipe"), "{}", error("piped.toml"));
    std::thread::scope(|scope| {
        scope.spawn(|| std::fs::write(&pipe, "seed = 1\n[train]\nsteps = 2").unwrap());
        let read = ConfigFile::read(&pipe).unwrap();
        // The pipe has nothing more, and opening it again would wait.
        assert_eq!((read.line_of("train.steps"), read.line_of("seed")), (Some(3), Some(1)));
    });
}

#[test]
fn many_tables_and_names_are_merged_in_one_pass() {
    // With a look at all of them for each, both would take minutes.
    let path = Path::new("run.toml");
    let mut files: BTreeMap<String, PathBuf> = (0..100_000).map(|at| (format!("t{at}"), path.to_owned())).collect();
    files.extend(["a.b", "a.b.c", "a.bb", "a.b-c"].map(|key| (key.to_owned(), path.to_owned())));
    (0..100_000).for_each(|at| forget(&format!("t{at}"), &mut files));
    forget("a.b", &mut files);
    assert_eq!(files.len(), 100_003);
    assert!(!files.contains_key("a.b.c"));

    let named = |at: usize| Value::Table(Table::from_iter([("name".to_owned(), Value::from(at.to_string()))]));
    let (mut base, list) = ((0..30_000).map(named).collect(), (20_000..50_000).map(named).collect());
    merge_named(&mut base, list, "a", path, &mut files);
    assert_eq!(base, (0..50_000).map(named).collect::<Vec<_>>());
}
