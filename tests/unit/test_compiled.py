"""Compiled modules stand in front of their sources only while they fit them."""

import importlib.machinery
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas import compiled

FETCH = "barnabas.formats.wire.generated.fetch"


def run_python(program: str, **environment: str) -> str:
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    return told.stdout.strip()


def test_interpreted_on_demand() -> None:
    told = run_python(
        f"import barnabas.compiled as c, {FETCH} as f; print(c.describe(), f.__file__)",
        BARNABAS_INTERPRETED="1",
    )
    assert told.startswith("hot modules interpreted: BARNABAS_INTERPRETED is set")
    assert told.endswith("generated/fetch.py")


def write_manifest(directory: Path, source: Path, **changes: object) -> compiled.HotModule:
    status = source.stat()
    module = compiled.HotModule(
        name="example.hot",
        source=str(source),
        size_bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        sha256=compiled.source_sha256(str(source)),
        build="build",
    )._replace(**changes)
    fields = "\t".join(str(field) for field in module)
    (directory / "manifest").write_text(f"digest\n{fields}\n")
    return module


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compiled, "MANIFEST", str(tmp_path / "manifest"))
    monkeypatch.setattr(compiled, "DIRECTORY", str(tmp_path))
    monkeypatch.setattr(compiled, "PACKAGE", str(tmp_path))
    path = tmp_path / "hot.py"
    path.write_text("answer = 42\n")
    return path


def test_without_a_manifest_nothing_is_compiled(source: Path) -> None:
    assert compiled.read_manifest() == []


def test_the_manifest_names_two_libraries_for_each_module(source: Path, tmp_path: Path) -> None:
    module = write_manifest(tmp_path, source)
    assert compiled.read_manifest() == [module]
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    stem = str(tmp_path / "build/example/hot")
    assert module.files == {
        "example.hot": stem + suffix,
        "example.hot__mypyc": f"{stem}__mypyc{suffix}",
    }


def test_an_edited_source_is_not_current(source: Path, tmp_path: Path) -> None:
    module = write_manifest(tmp_path, source)
    assert module.is_current()
    source.write_text("answer = 43\n")
    os.utime(source, ns=(module.mtime_ns + 1, module.mtime_ns + 1))
    assert not module.is_current()
    source.write_text("answer = 420\n")
    assert not module.is_current()
    source.unlink()
    assert not module.is_current()


def test_a_source_that_was_only_touched_is_current(source: Path, tmp_path: Path) -> None:
    module = write_manifest(tmp_path, source)
    os.utime(source, ns=(1, 1))
    assert module.is_current()


def test_the_finder_leaves_other_names_alone(tmp_path: Path) -> None:
    finder = compiled.HotFinder({"example.hot": str(tmp_path / "hot.so")})
    assert finder.find_spec("example.cold", None) is None
    spec = finder.find_spec("example.hot", None)
    assert spec is not None and spec.origin == str(tmp_path / "hot.so")
    assert isinstance(spec.loader, importlib.machinery.ExtensionFileLoader)


def test_compiled_and_interpreted_encode_the_same() -> None:
    program = (
        f"import barnabas.compiled as c, {FETCH} as f\n"
        "from librt.strings import BytesWriter\n"
        "p = f.FetchPartition(partition=1, fetch_offset=2**40)\n"
        "r = f.FetchRequest(topics=[f.FetchTopic(topic='t', partitions=[p])])\n"
        "w = BytesWriter(); f.encode_request_v12(w, r, []); b = w.getvalue()\n"
        "print(b.hex(), f.decode_request_v12(b, 0, len(b)))"
    )
    assert run_python(program) == run_python(program, BARNABAS_INTERPRETED="1")
