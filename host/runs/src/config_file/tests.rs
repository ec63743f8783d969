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
