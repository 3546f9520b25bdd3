"""PettingZoo."""

from __future__ import annotations

import numpy as np
import pytest
from pettingzoo import test as parallel_test

import windfall


def play(seed, world_seed=0, steps=60, version=0):
    env = windfall.parallel_env(functions=4, world_seed=world_seed, version=version)
    draw = np.random.default_rng(1)
    rows, infos = env.reset(seed=seed)
    seen = [row.tobytes() for row in rows.values()]
    for _ in range(steps):
        actions = {agent: int(draw.choice(np.flatnonzero(infos[agent]["action_mask"]))) for agent in env.agents}
        rows, rewards, ended, cut, infos = env.step(actions)
        seen.extend(row.tobytes() for row in rows.values())
        seen.extend(rewards.values())
    return seen


@pytest.mark.parametrize("version", [0, 1])
def test_pettingzoos_parallel_test(version):
    env = windfall.parallel_env(functions=3, ticks=50, version=version)
    assert env.metadata["name"] == f"windfall/MultiScaling-v{version}"
    parallel_test.parallel_api_test(env, num_cycles=200)


@pytest.mark.parametrize("version", [0, 1])
def test_pettingzoos_seed_test(version):
    parallel_test.parallel_seed_test(lambda: windfall.parallel_env(functions=3, version=version))


@pytest.mark.parametrize("version", [0, 1])
def test_whole_episodes_are_decided_by_the_seed(version):
    assert play(3, version=version) == play(3, version=version)
    assert play(3, version=version) != play(4, version=version)
    assert play(3, version=version) != play(3, world_seed=1, version=version)


def test_there_is_no_third_version():
    with pytest.raises(ValueError, match="version is 2"):
        windfall.parallel_env(version=2)


def test_an_episode_ends_for_everyone_and_begins_again():
    env = windfall.parallel_env(functions=2, ticks=5)
    env.reset(seed=1)
    for _ in range(5):
        _, rewards, ended, cut, infos = env.step({agent: 0 for agent in env.agents})
    assert set(cut.values()) == {True} and set(ended.values()) == {False} and env.agents == []
    assert all(isinstance(reward, float) for reward in rewards.values())
    with pytest.raises(RuntimeError, match="reset"):
        env.step({})
    assert set(env.reset()[0]) == {"function_0", "function_1"}


def test_moves_that_are_not_allowed_are_reported():
    env = windfall.parallel_env(functions=2)
    _, infos = env.reset(seed=1)
    forbidden = {agent: int(np.flatnonzero(infos[agent]["action_mask"] == 0)[0]) for agent in env.agents
                 if not infos[agent]["action_mask"].all()}
    while not forbidden:
        _, _, _, _, infos = env.step({agent: env.actions.index("in") if "in" in env.actions else 2 for agent in env.agents})
        forbidden = {agent: int(np.flatnonzero(infos[agent]["action_mask"] == 0)[0]) for agent in env.agents
                     if not infos[agent]["action_mask"].all()}
    _, _, _, _, infos = env.step({agent: forbidden.get(agent, 0) for agent in env.agents})
    assert all(infos[agent]["illegal"] for agent in forbidden)


@pytest.mark.parametrize("wrong", [1.5, None, "up", [1]])
def test_wrong_actions_are_named(wrong):
    env = windfall.parallel_env(functions=2)
    env.reset(seed=1)
    with pytest.raises(TypeError, match="function_1"):
        env.step({"function_0": 0, "function_1": wrong})
    with pytest.raises(ValueError, match="function_1"):
        env.step({"function_0": 0})
    with pytest.raises(ValueError, match="allowed is 0 to"):
        env.step({"function_0": 0, "function_1": 99})
    assert len(env.step({"function_0": 0, "function_1": 0})[0]) == 2
