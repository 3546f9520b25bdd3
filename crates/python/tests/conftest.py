"""What the tests share: the flag for long ones, a checkpoint, and runs in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import windfall
from windfall import _native

ROOT = Path(__file__).parents[3]


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run tests that take minutes")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes; run with --long"))


@pytest.fixture
def in_process():
    """Runs a program in a fresh Python and returns what came of it; nothing may hang longer than `seconds`."""

    def run(code: str, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", textwrap.dedent(code)]
        return subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)

    return run


@pytest.fixture
def checkpoint(tmp_path):
    """A small network for `windfall/Ece471-v0` with weights from a fixed seed."""
    draw = np.random.default_rng(3)
    sizes = [(16, 6), (8, 16), (5, 8)]
    layers = [
        (draw.normal(size=size).astype(np.float32), draw.normal(size=size[0]).astype(np.float32)) for size in sizes
    ]
    path = tmp_path / "small.safetensors"
    mean, variance = draw.random(6).tolist(), (0.1 + draw.random(6)).tolist()
    _native.save_network(str(path), "windfall/Ece471-v0", "ppo", "tanh", layers, (mean, variance, 1000.0), 5000)
    return windfall.load_policy(path)
