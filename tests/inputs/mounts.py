"""Disks of inputs: without room, read-only, with a quota, or gone before the command has ended."""
import ctypes
import multiprocessing
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, ContextManager, Iterator, NamedTuple

from inputs import KB, MB, write

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
# Names of what fills a disk.
FILLER = "filler"
# What a quota counts before there are files.
EMPTY = 16 * KB


class Disk(NamedTuple):
    """The folder `disk` of an input, with files on it: a disk of its own with this room in bytes, or this room for names, or
    read-only, or with this quota in bytes; or a plain folder, which gets another name once a file matches `gone_after`."""

    files: dict[str, Any] = {}
    room: int | None = None
    names: int | None = None
    is_read_only: bool = False
    quota: int | None = None
    gone_after: str | None = None

    # `gone_after` may be empty: the folder then keeps its name.
    def is_mounted(self) -> bool:
        return self.gone_after is None

    @contextmanager
    def around(self, folder: Path) -> Iterator[None]:
        path = folder / "disk"
        path.mkdir()
        made = mounted if self.quota is None else with_quota
        with made(path) if self.is_mounted() else nullcontext():
            for name, content in self.files.items():
                write(path / name, content)
            if self.room is not None or self.names is not None:
                fill(path, self.room, self.names)
            if self.quota is not None:
                limit(path, str(self.quota + EMPTY))
            if self.is_read_only:
                mount("-o", "remount,ro", path)
            with renamed(path, self.gone_after) if self.gone_after else nullcontext():
                yield


@cache
def why_no_mounts() -> str | None:
    """Makes the mounts of this process its own, so that they end with it. Returns why this machine does not allow that."""
    if not (shutil.which("mount") and shutil.which("umount")):
        return "there are no programs mount and umount"
    library = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if library.unshare(NEW_MOUNTS) != 0:
        if library.unshare(NEW_USER | NEW_MOUNTS) != 0:
            return os.strerror(ctypes.get_errno())
        try:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        except OSError as error:
            return str(error)
    tried = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, text=True)
    return tried.stderr.strip() or None


@cache
def why_no_quotas() -> str | None:
    """Returns why this machine does not allow disks with quotas."""
    missing = [name for name in ("mkfs.btrfs", "btrfs") if not shutil.which(name)]
    if why := why_no_mounts() or missing and f"there is no program {missing[0]}: install btrfs-progs":
        return why
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Disk(quota=MB).around(Path(folder)):
                return None
        except subprocess.CalledProcessError as error:
            return str(error)


def mount(*arguments: Any) -> None:
    subprocess.run(["mount", *arguments], check=True)


@contextmanager
def mounted(path: Path) -> Iterator[None]:
    mount("-t", "tmpfs", "-o", f"size={64 * MB},nr_inodes=4000", "gavel-disk", path)
    try:
        yield
    finally:
        # What still has a file there does not matter.
        subprocess.run(["umount", "--lazy", path], check=True)


@contextmanager
def with_quota(path: Path) -> Iterator[None]:
    """A disk whose quotas bind root too."""
    image = path.with_name("disk.image")
    with open(image, "wb") as file:
        file.truncate(128 * MB)
    run = lambda *command: subprocess.run(command, check=True, capture_output=True)
    run("mkfs.btrfs", "--quiet", "--mixed", "--metadata", "single", image)
    mount("-o", "loop", image, path)
    try:
        run("btrfs", "quota", "enable", path)
        yield
    finally:
        run("umount", "--lazy", path)
        image.unlink()


def limit(path: Path, most: str) -> None:
    subprocess.run(["btrfs", "qgroup", "limit", most, path], check=True)


def fill(path: Path, room: int | None, names: int | None) -> None:
    """Leaves this room on a disk, and room for so many names."""
    (path / FILLER).mkdir()
    found = os.statvfs(path)
    for number in range(found.f_favail - names if names is not None else 0):
        (path / FILLER / str(number)).touch()
    if room is not None:
        with open(path / FILLER / "bytes", "wb", buffering=0) as filler:
            found = os.statvfs(path)
            filler.write(bytes(max(0, found.f_bavail * found.f_frsize - room)))


def make_room(folder: Path) -> None:
    """Makes the disk of an input one that can be written, with room; a folder gets its name again."""
    path, gone = folder / "disk", folder / "disk.gone"
    if gone.exists():
        # A command may have begun another folder under this name.
        shutil.rmtree(path, ignore_errors=True)
        gone.rename(path)
    if os.path.ismount(path):
        mount("-o", "remount,rw", path)
        shutil.rmtree(path / FILLER, ignore_errors=True)
        if (folder / "disk.image").exists():
            limit(path, "none")


@contextmanager
def beside(work: Any) -> Iterator[None]:
    """Calls a function in another process meanwhile."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def renamed(path: Path, pattern: str) -> ContextManager[None]:
    """Gives a folder another name once a file in it matches."""

    def work() -> None:
        while not any(path.glob(pattern)):
            time.sleep(0.002)
        path.rename(path.with_name("disk.gone"))

    return beside(work)
