"""The package itself: its command line, its benchmark, its types, its documentation."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import subprocess
import sys

import windfall
from windfall import _native, bench


def run(*words, cwd=None):
    words = [sys.executable, "-m", *words]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, cwd=cwd)


def test_the_command_line():
    done = run("windfall", "--help")
    assert done.returncode == 0 and "compare" in done.stdout and "bench" in done.stdout
    assert run("windfall", "--version").stdout == f"windfall {windfall.__version__}\n"
    assert "windfall/Sizing-v0" in run("windfall", "environments").stdout
    assert "windfall" in run("windfall", "policies").stdout
    done = run("windfall", "compare", "windfal", "--minutes", "1")
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_a_short_comparison_from_the_command_line():
    words = ["compare", "windfall", "--minutes", "1", "--seeds", "1", "--format", "json"]
    rows = json.loads(run("windfall", *words).stdout)
    assert [row["policy"] for row in rows] == ["fixed", "windfall"]


def test_the_benchmark_has_its_keys():
    done = run("windfall.bench", "--format", "json", "--seconds", "0.05")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for key in ("single", "vector256", "pure_python", "cartpole"):
        assert result[f"{key}_steps_per_s"] > 0
    assert bench.COUNT == 256


def test_the_version_is_the_wheels():
    assert importlib.metadata.version("windfall") == windfall.__version__


def test_the_stub_names_what_there_is():
    stub = open(inspect.getfile(windfall).replace("__init__.py", "_native.pyi"), encoding="utf-8").read()
    for name, value in vars(_native).items():
        if name.startswith("__") and name != "__version__":
            continue
        assert name in stub, name
        if inspect.isclass(value):
            for member in vars(value):
                if not member.startswith("_"):
                    assert f"def {member}(" in stub, f"{name}.{member}"


def test_types_are_checked_strictly(tmp_path):
    # The package that is installed, not the sources beside the tests.
    words = ["mypy", "--strict", "--ignore-missing-imports", "--no-error-summary", "-p", "windfall"]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_documented():
    for name in windfall.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(windfall, name)), name
