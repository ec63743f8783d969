//! `cargo xtask wheel`: the Python packages for trainers in Python: `gavel-rl`, and `gavel-rl-plugins` with the large
//! components.
//!
//! The archive of the extension module comes from the build of the workspace, since maturin would compile wasmtime a
//! second time. zig links it for an older glibc than this machine's, and auditwheel checks the result.

mod interpreters;
mod metadata;

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::{cache, guests, python, setup, ui};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the package, from the root.
const PACKAGE: &str = "sdk/trainer-python";
/// The folder of the package with the large components, from the root.
const LARGE_PACKAGE: &str = "sdk/trainer-python-plugins";
/// The large components: the standard rewards in Python, and the programs that run Python and JavaScript. A Python
/// component compresses to a third.
const LARGE: [&str; 4] = ["javascript", "math-verify", "python", "reasoning-gym"];
/// The folder of wheels, from the root.
const WHEELS: &str = "target/wheels";
/// The oldest glibc that the extension module runs with.
const GLIBC: (u32, u32) = (2, 28);
/// The oldest Python, whose stable ABI it has.
const PYTHON: &str = "cp310";
/// The largest component that `gavel-rl` brings: plugins in Rust are smaller, and plugins in Python larger.
const MOST_BYTES: u64 = 4_000_000;
/// The time of each file in a wheel, in seconds since 1970: the same files give the same wheel.
const FILE_TIME: &str = "315532800";
/// The packages from PyPI that the tests use: the small ones with each Python, pyarrow (55 MB) only with the newest.
const TEST_PACKAGES: [&str; 3] = ["pytest==9.2.0", "pytest-xdist==3.8.0", "pyarrow==26.0.1"];
/// The number of small packages.
const SMALL: usize = 2;

/// Builds the wheels to `target/wheels/` and checks them.
pub fn run(root: &Path) -> Result<()> {
    let libtorch = setup::all(root)?;
    guests::build_shipped(root)?;
    build(root, &libtorch)?;
    build_large(root).map(drop)
}

/// Builds the wheel from components that are built, and returns its path.
fn build(root: &Path, libtorch: &Path) -> Result<PathBuf> {
    let tools = python::wheel_tools()?;
    let archive = compile(root, libtorch)?;
    let platform = format!("manylinux_{}_{}_{}", GLIBC.0, GLIBC.1, std::env::consts::ARCH);
    ui::step("wheel", || {
        let about = metadata::read(&root.join(PACKAGE))?;
        let folder = root.join(WHEELS).join("unpacked");
        cache::remove(&folder)?;
        let package = folder.join("gavel_rl");
        copy_modules(&root.join(PACKAGE).join("python/gavel_rl"), &package)?;
        link_module(root, &tools, &archive, &package.join("_native.abi3.so"))?;
        let scripts = folder.join(format!("gavel_rl-{}.data/scripts", about.version));
        fs::create_dir_all(&scripts).map_err(|error| cannot("make", &scripts, &error))?;
        // This system's libgcc_s needs a newer glibc; the command runs with the one of its own system.
        link(&tools, &archive, &scripts.join("gavel"), &["-Wl,-u,main", "-Wl,--allow-shlib-undefined"])?;
        let plugins = components(root, &package.join("plugins"))?;
        let tag = format!("{PYTHON}-abi3-{platform}");
        metadata::write(root, PACKAGE, &about, &tag, &folder)?;
        let wheel = pack(root, &tools, &folder, &format!("gavel_rl-{}-{tag}.whl", about.version))?;
        audit(&tools, &wheel, &platform)?;
        let shown = shown(root, &wheel)?;
        Ok((wheel, format!("{shown}, with {plugins} plugins")))
    })
}

/// Builds the wheel of the large components, which are built, and returns its path. Any system can use it.
fn build_large(root: &Path) -> Result<PathBuf> {
    let tools = python::wheel_tools()?;
    ui::step("wheel of the large plugins", || {
        let about = metadata::read(&root.join(LARGE_PACKAGE))?;
        let folder = root.join(WHEELS).join("unpacked-plugins");
        cache::remove(&folder)?;
        let package = folder.join("gavel_rl_plugins");
        copy_modules(&root.join(LARGE_PACKAGE).join("gavel_rl_plugins"), &package)?;
        for name in LARGE.map(|name| format!("{name}.wasm")) {
            let component = root.join("target/plugins").join(&name);
            fs::copy(&component, package.join(&name)).map_err(|error| cannot("copy", &component, &error))?;
        }
        let tag = "py3-none-any";
        metadata::write(root, LARGE_PACKAGE, &about, tag, &folder)?;
        let wheel = pack(root, &tools, &folder, &format!("gavel_rl_plugins-{}-{tag}.whl", about.version))?;
        let shown = shown(root, &wheel)?;
        Ok((wheel, format!("{shown}, with {}", LARGE.join(", "))))
    })
}

/// Packs the unpacked wheel in `folder`, and returns its path. Its name is `name`, by the metadata in the folder.
fn pack(root: &Path, tools: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let wheels = root.join(WHEELS);
    let packed = ["-m", "wheel", "pack", "--dest-dir"].map(Path::new).into_iter();
    Call::new(tools.join("python3"), packed.chain([&*wheels, folder]))
        .env("SOURCE_DATE_EPOCH", FILE_TIME)
        .read("cannot pack the wheel")?;
    Ok(wheels.join(name))
}

/// The path of a wheel from the root, and its size.
fn shown(root: &Path, wheel: &Path) -> Result<String> {
    let size = fs::metadata(wheel).map_err(|error| cannot("read", wheel, &error))?.len();
    let path = wheel.strip_prefix(root).unwrap_or(wheel).display();
    Ok(format!("{path}, {} MB", size / 1_000_000))
}

/// Compiles the archive of the extension module, as the build of the whole workspace does.
fn compile(root: &Path, libtorch: &Path) -> Result<PathBuf> {
    ui::loud_step("extension module", "building", || {
        Call::cargo(["build", "--release", "--workspace", "--lib"])
            .within(root)
            .env("LIBTORCH", libtorch)
            .show("cannot build the extension module")
            .map_err(|failure| failure.hint("see the compiler's message above"))?;
        Ok((root.join("target/release/libgavel_rl.a"), "target/release/libgavel_rl.a".into()))
    })
}

/// Links the extension module.
fn link_module(root: &Path, tools: &Path, archive: &Path, module: &Path) -> Result<()> {
    let exports = format!("-Wl,--version-script={}", root.join(PACKAGE).join("exports.map").display());
    link(tools, archive, module, &["-shared", "-Wl,-u,PyInit__native", &exports])
}

/// Links the archive, for systems with an older glibc than this one's.
fn link(tools: &Path, archive: &Path, out: &Path, arguments: &[&str]) -> Result<()> {
    let target = format!("{}-linux-gnu.{}.{}", std::env::consts::ARCH, GLIBC.0, GLIBC.1);
    // zig would take its own unwinder, which does not know the frames of wasmtime.
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let unwinder = Call::new(compiler, ["-print-file-name=libgcc_s.so.1"]).read("cannot find libgcc_s")?;
    let (archive, shown) = (archive.display().to_string(), out.display().to_string());
    let call = ["-m", "ziglang", "cc", "-target", &target, "-o", &shown].into_iter();
    // Names of functions stay, for the backtrace of a panic.
    let common = ["-Wl,--gc-sections", "-Wl,--strip-debug", &archive, &unwinder, "-lpthread", "-ldl", "-lm", "-lc"];
    let arguments = call.chain(arguments.iter().copied()).chain(common);
    Call::new(tools.join("python3"), arguments).read(&format!("cannot link {}", out.display())).map(drop)
}

/// Copies the modules in Python.
fn copy_modules(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(|error| cannot("make", to, &error))?;
    let entries = fs::read_dir(from).map_err(|error| cannot("read", from, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.file_name() {
            Some(name) if path.is_file() => {
                fs::copy(&path, to.join(name)).map_err(|error| cannot("copy", &path, &error))?;
            }
            Some(name) if name != "__pycache__" => copy_modules(&path, &to.join(name))?,
            _ => {}
        }
    }
    Ok(())
}

/// Copies the standard plugins that are small, and returns their number.
fn components(root: &Path, folder: &Path) -> Result<usize> {
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    let built = root.join("target/plugins");
    let mut copied = 0;
    for name in guests::names(&root.join("plugins"))? {
        let component = built.join(format!("{name}.wasm"));
        let size = fs::metadata(&component).map_err(|error| cannot("read", &component, &error))?.len();
        if size <= MOST_BYTES {
            let place = folder.join(format!("{name}.wasm"));
            fs::copy(&component, place).map_err(|error| cannot("copy", &component, &error))?;
            copied += 1;
        }
    }
    Ok(copied)
}

/// Checks that the wheel runs with the glibc that its name promises.
fn audit(tools: &Path, wheel: &Path, platform: &str) -> Result<()> {
    let arguments = ["-m", "auditwheel", "show"].map(Path::new).into_iter().chain([wheel]);
    let about = Call::new(tools.join("python3"), arguments).read("cannot check the wheel")?;
    let words = about.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.contains(&format!("platform tag: \"{platform}\"")) {
        true => Ok(()),
        false => Err(Failure::new(format!("the wheel is not for {platform}")).why(about)),
    }
}

/// Builds the wheels and runs their tests in clean environments of the oldest and the newest Python of this machine, both
/// at once, as each keeps one core busy. The wheel of the large plugins is installed with the newest alone, so that the
/// other tests what is missing.
pub fn test(root: &Path) -> Result<()> {
    let libtorch = setup::all(root)?;
    let (wheel, large) = (build(root, &libtorch)?, build_large(root)?);
    let tools = python::wheel_tools()?;
    let pythons = interpreters::oldest_and_newest()?;
    let newest = pythons.len() - 1;
    let wheels = [&*wheel, &*large];
    std::thread::scope(|scope| {
        let (tools, wheels) = (&tools, &wheels);
        let tested = pythons.iter().enumerate().map(|(number, (version, python))| {
            let (wheels, packages) = match number == newest {
                true => (&wheels[..], &TEST_PACKAGES[..]),
                false => (&wheels[..1], &TEST_PACKAGES[..SMALL]),
            };
            scope.spawn(move || test_with(root, tools, wheels, version, python, packages))
        });
        let tested: Vec<_> = tested.collect();
        let ended = tested.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Runs the tests of wheels in a clean environment of a Python, with these packages beside.
fn test_with(
    root: &Path,
    tools: &Path,
    wheels: &[&Path],
    version: &str,
    python: &Path,
    packages: &[&str],
) -> Result<()> {
    let environment = root.join(WHEELS).join(format!("python-{version}"));
    let here = environment.join("bin/python3");
    ui::step(&format!("environment of Python {version}"), || {
        cache::remove(&environment)?;
        Call::new(python, [Path::new("-m"), Path::new("venv"), Path::new("--without-pip"), &environment])
            .read("cannot make a virtual environment")?;
        install(tools, &here, wheels)?;
        Ok(((), "the wheels are installed".into()))
    })?;
    let found = python::test_wheels(tools, &here, version, packages)?;
    let named = [Path::new("--find-links"), &found].into_iter().chain(packages.iter().map(Path::new));
    install(tools, &here, &named.collect::<Vec<_>>())?;
    // The tests build components with componentize-py, which lies beside the tools.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [tools.to_owned()].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).map_err(|error| Failure::new("cannot extend PATH").why(error))?;
    ui::step(&format!("tests of the wheel with Python {version}"), || {
        let tested = Call::new(here, ["-m", "unittest", "discover", "-s", "tests"])
            .within(&root.join(PACKAGE))
            .env("PATH", &path)
            .quietly(&format!("tests of the wheel failed with Python {version}"));
        tested.result.map(|()| ((), "passed".into()))
    })
}

/// Installs packages for the Python `here` without the network.
fn install(tools: &Path, here: &Path, packages: &[&Path]) -> Result<()> {
    let pip = [Path::new("-m"), Path::new("pip"), Path::new("--python"), here];
    let install = ["install", "--no-index", "--quiet"].map(Path::new);
    let arguments = pip.into_iter().chain(install).chain(packages.iter().copied());
    Call::new(tools.join("python3"), arguments).read("cannot install packages for the tests of the wheel").map(drop)
}
