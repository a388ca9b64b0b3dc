"""Compiled kernels on the disk, keyed by the digest of their sources.

An entry is a file, which is written under a temporary name and renamed, so that several processes share a folder
without locks. It begins with a digest of its key and its content: a damaged or misnamed entry counts as absent. A
folder that cannot be read or written is an empty cache. Entries are machine code; a folder that other users may write
to is therefore not used.
"""

import contextlib
import hashlib
import os
import secrets
import sys
import time
from pathlib import Path

# Entries that a folder may hold; beyond, the oldest quarter is removed.
LIMIT = 2000
# Seconds after which the temporary file of a killed process is removed.
_STALE = 3600.0
_DIGEST_BYTES = 32


def default_folder() -> Path | None:
    """The folder for compiled kernels in the platform's cache folder, or None if the user has no home.

    It is ``oxigrad/kernels`` in ``$XDG_CACHE_HOME`` (by default ``~/.cache``), in ``~/Library/Caches`` on macOS, and in
    ``%LOCALAPPDATA%`` on Windows.
    """
    try:
        if sys.platform == "win32":
            root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
        elif sys.platform == "darwin":
            root = Path.home() / "Library/Caches"
        else:
            root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return root / "oxigrad" / "kernels"


class DiskCache:
    """Bytes by key in a folder, or an empty cache if ``folder`` is None. No method raises `OSError`."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def read(self, key: bytes) -> bytes | None:
        """The content stored for ``key``, or None. A damaged entry is removed."""
        if self.folder is None or not _is_private(self.folder):
            return None
        file = self.folder / _name(key)
        try:
            if not file.is_file():  # reading a pipe would wait
                return None
            stored = file.read_bytes()
        except OSError:
            return None
        digest, content = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        if digest != _digest(key, content):
            _remove(file)
            return None
        return content

    def write(self, key: bytes, content: bytes) -> None:
        """Stores ``content`` for ``key``, whole or not at all."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(self.folder):
                return
            temporary = self.folder / f"{secrets.token_hex(8)}.tmp"
            try:
                temporary.write_bytes(_digest(key, content) + content)
                os.replace(temporary, self.folder / _name(key))
            finally:
                _remove(temporary)
            self._prune(self.folder)

    @staticmethod
    def _prune(folder: Path) -> None:
        """Removes the oldest entries of a folder with too many, and temporary files of killed processes."""
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            if name.endswith(".tmp") and time.time() - _modified(folder / name) > _STALE:
                _remove(folder / name)
        kernels = [folder / name for name in names if name.endswith(".kernel")]
        if len(kernels) > LIMIT:
            for file in sorted(kernels, key=_modified)[: len(kernels) // 4]:
                _remove(file)


def _name(key: bytes) -> str:
    return f"{hashlib.sha256(key).hexdigest()}.kernel"


def _digest(key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key).digest() + content).digest()


def _is_private(folder: Path) -> bool:
    """Whether nobody but this user can write to a folder. Windows keeps folders of the profile private by itself."""
    try:
        status = folder.stat()
    except OSError:
        return False
    return sys.platform == "win32" or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _modified(file: Path) -> float:
    """Seconds since the epoch of the last change; now, for a file that is gone."""
    try:
        return file.stat().st_mtime
    except OSError:
        return time.time()


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink()
