"""The caches: a hit is right, everything else is a miss, nothing grows without bound."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from tiny_programs import program

from ixion.base import config
from ixion.runtime.cache import ObjectCache, ProgramCache, cache_folder, key_of
from ixion.runtime.program import Step


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_objects_come_back(tmp_path):
    cache = ObjectCache(tmp_path)
    assert cache.get("a") is None
    cache.put("a", b"code")
    cache.put("b", b"")
    assert ObjectCache(tmp_path).get("a") == b"code"
    assert cache.get("b") == b""
    cache.put("a", b"other")
    assert cache.get("a") == b"other"


def test_programs_come_back(tmp_path):
    cache = ProgramCache(tmp_path)
    made = program([Step("call", "empty")], constants=[np.arange(5)])
    assert cache.get("a") is None
    cache.put("a", made)
    loaded = cache.get("a")
    assert loaded.steps == made.steps
    np.testing.assert_array_equal(loaded.constants[0], np.arange(5))


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 5000])
@pytest.mark.parametrize("kind", [ObjectCache, ProgramCache])
def test_damaged_entries_are_misses_and_go(tmp_path, kind, damage):
    cache = kind(tmp_path)
    cache.put("a", b"code" if kind is ObjectCache else program([]))
    (path,) = files(tmp_path)
    path.write_bytes(damage)
    assert cache.get("a") is None
    assert not path.exists()


def test_keys_of_parts_do_not_collide():
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (b"abc",), ("a", "b", "c")]
    assert key_of("abc") == key_of(b"abc")
    assert len({key_of(*part) for part in parts}) == len(parts) - 1


def test_off_means_off(tmp_path):
    cache = ObjectCache(tmp_path)
    cache.put("a", b"code")
    with config.override(cache=False):
        assert cache.get("a") is None
        cache.put("b", b"code")
    assert cache.get("a") == b"code"
    assert cache.get("b") is None


def test_folder_follows_the_option(tmp_path):
    with config.override(cache_dir=str(tmp_path / "mine")):
        assert cache_folder() == tmp_path / "mine"
        ObjectCache().put("a", b"code")
        assert ObjectCache().get("a") == b"code"
    assert len(files(tmp_path / "mine")) == 1


def test_unwritable_folders_are_ignored(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    for cache, value in ((ObjectCache(blocked), b"code"), (ProgramCache(blocked), program([]))):
        cache.put("a", value)
        assert cache.get("a") is None


def test_longest_unused_entries_go_first(tmp_path):
    with config.override(cache_limit_mb=1):
        cache = ObjectCache(tmp_path)
        for number in range(7):
            cache.put(str(number), bytes(100_000))
        for path in files(tmp_path):
            os.utime(path, (1000, 1000))
        assert cache.get("3") is not None
        for number in range(7, 11):
            cache.put(str(number), bytes(100_000))
        sizes = sum(path.stat().st_size for path in files(tmp_path))
        assert sizes <= 1 << 20
        assert cache.get("3") is not None
        assert cache.get("10") is not None
        assert cache.get("0") is None


def test_threads_share_a_cache(tmp_path):
    cache = ObjectCache(tmp_path)
    wrong = []

    def work(seed):
        for turn in range(60):
            key = str((seed + turn) % 5)
            image = cache.get(key)
            if image is not None and image != key.encode() * 1000:
                wrong.append(key)
            cache.put(key, key.encode() * 1000)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(files(tmp_path)) == 5


def test_processes_share_a_cache(tmp_path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ixion.runtime.cache import ObjectCache\n"
        "cache = ObjectCache(Path(sys.argv[1]))\n"
        "for turn in range(300):\n"
        "    key = str(turn % 3)\n"
        "    image = cache.get(key)\n"
        "    assert image in (None, key.encode() * 9000)\n"
        "    cache.put(key, key.encode() * 9000)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert len(files(tmp_path)) == 3
