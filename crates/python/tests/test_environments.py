"""Single environments: the checks of others, whole episodes by seed, equality with Rust."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import windfall
from windfall.table import PythonTable

NAMES = list(windfall.environments())
SEEDED = [name for name in NAMES if name != "toy/Corridor-v0"]


def episode(name: str, seed: int, steps: int = 250, split: str = "training"):
    """Everything that a random episode shows, as one list of bytes and numbers."""
    env = windfall.make(name, split)
    draw = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    seen = [observation.tobytes(), info["action_mask"].tobytes()]
    for _ in range(steps):
        mask = info["action_mask"]
        action = int(draw.choice(np.flatnonzero(mask)))
        observation, reward, terminated, truncated, info = env.step(action)
        seen.extend([observation.tobytes(), reward, terminated, truncated, info["action_mask"].tobytes()])
        if terminated or truncated:
            observation, info = env.reset()
            seen.append(observation.tobytes())
    return seen


def test_the_ids_of_the_issue_are_there():
    wanted = {"Scaling", "Sizing", "Concurrency", "Ece471", "Ece471Direction", "Ece471Fixed", "Ece471FixedDirection"}
    assert {f"windfall/{name}-v0" for name in wanted} <= set(NAMES)


def test_gymnasium_makes_them(in_process):
    assert gym.make("windfall/Scaling-v0").reset(seed=1)[0].shape == (7,)
    code = "import gymnasium; print(gymnasium.make('windfall:windfall/Scaling-v0').reset(seed=1)[0].shape)"
    done = in_process(code)
    assert done.stdout.strip() == "(7,)", done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_check(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*not within the environment's registry.*")
        warnings.filterwarnings("ignore", message=".*render modes.*")
        warnings.filterwarnings("ignore", message=".*does not have a `spec`.*")
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        check_env(gym.make(name).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_whole_episodes_are_decided_by_the_seed(name):
    steps = 60 if "Concurrency" in name else 450
    assert episode(name, 7, steps) == episode(name, 7, steps)


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_is_another_episode(name):
    steps = 20 if "Concurrency" in name else 250
    assert episode(name, 7, steps) != episode(name, 8, steps)


@pytest.mark.parametrize("name", ["windfall/Scaling-v0", "windfall/Sizing-v0", "windfall/Concurrency-v0"])
def test_the_parts_of_the_world_differ(name):
    parts = [episode(name, 7, 20, split) for split in ("training", "validation", "test")]
    assert parts[0] != parts[1] != parts[2] != parts[0]


def test_observations_are_float32_and_rewards_are_floats():
    env = windfall.make("windfall/Scaling-v0")
    observation, _ = env.reset(seed=3)
    kept = observation.copy()
    following, reward, terminated, truncated, info = env.step(1)
    assert observation.dtype == np.float32 and env.observation_space.contains(following)
    assert type(reward) is float and type(terminated) is bool and type(truncated) is bool
    assert np.array_equal(observation, kept), "an observation that was returned stays as it was"
    assert env.action_space.sample(info["action_mask"]) < len(env.actions)


def test_a_seed_is_followed_by_its_own_episodes():
    one, other = windfall.make("toy/Identity-v0"), windfall.make("toy/Identity-v0")
    one.reset(seed=5)
    other.reset(seed=5)
    for _ in range(5):
        assert np.array_equal(one.reset()[0], other.reset()[0])
    assert np.array_equal(one.reset(seed=5)[0], other.reset(seed=5)[0])


def test_a_pickled_environment_is_a_fresh_one():
    env = windfall.make("windfall/Ece471-v0")
    env.reset(seed=1)
    copy = pickle.loads(pickle.dumps(env))
    assert np.array_equal(copy.reset(seed=2)[0], windfall.make("windfall/Ece471-v0").reset(seed=2)[0])


@pytest.mark.parametrize("rate", range(1, 9))
def test_the_pure_python_table_is_the_same_environment(rate):
    native, python = windfall.make("windfall/Ece471-v0"), PythonTable(rate)
    seed = next(s for s in range(500) if native.reset(seed=s)[1]["requests_per_s"] == rate)
    draw = np.random.default_rng(rate)
    for _ in range(3):
        assert np.array_equal(native.reset(seed=seed)[0], python.reset()[0])
        for _ in range(200):
            action = int(draw.integers(5))
            ours, reward, terminated, truncated, info = native.step(action)
            theirs, expected, *ends, same = python.step(action)
            assert np.array_equal(info["action_mask"], same["action_mask"])
            assert np.array_equal(ours, theirs)
            assert reward == np.float32(expected)
            assert [terminated, truncated] == ends


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_the_rust_environments(name):
    """`windfall env` plays the Rust environment without any of this package; both must agree number by number."""
    program = os.environ.get("WINDFALL_BIN")
    if not program:
        pytest.skip("WINDFALL_BIN does not name the program; `cargo xtask python` sets it")
    draw = np.random.default_rng(11)
    count = len(windfall.make(name).actions)
    steps = 25 if "Concurrency" in name else 150
    lines = [{"reset": {"seed": 9}}] + [{"step": int(action)} for action in draw.integers(count, size=steps)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([program, "env", name], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    env = windfall.make(name)
    observation, info = env.reset(seed=9)
    assert np.array_equal(observation, np.array(answers[0]["observation"], dtype=np.float32))
    for line, answer in zip(lines[1:], answers[1:], strict=True):
        observation, reward, terminated, truncated, info = env.step(line["step"])
        assert np.array_equal(observation, np.array(answer["observation"], dtype=np.float32))
        assert reward == np.float32(answer["reward"])
        assert (terminated, truncated) == (answer["terminated"], answer["truncated"])
        assert info["action_mask"].astype(bool).tolist() == answer["info"]["mask"]
        for key, value in answer["info"].items():
            assert key == "mask" or info[key] == value
        if terminated or truncated:
            break
