"""Vectors: equal to single environments in all three autoreset modes, on any number of threads."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import windfall

COUNT = 5
MODES = list(AutoresetMode)


def pair(name: str, mode: AutoresetMode, **settings):
    ours = windfall.make_vec(name, COUNT, autoreset_mode=mode, **settings)
    theirs = SyncVectorEnv([lambda: windfall.make(name)] * COUNT, autoreset_mode=mode)
    return ours, theirs


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["windfall/Ece471-v0", "toy/Corridor-v0", "windfall/Scaling-v0"])
def test_a_vector_is_its_single_environments(name, mode):
    ours, theirs = pair(name, mode)
    draw = np.random.default_rng(1)
    first, infos = ours.reset(seed=40)
    assert np.array_equal(first, theirs.reset(seed=40)[0])
    for _ in range(420):
        actions = draw.integers(ours.single_action_space.n, size=COUNT)
        our, our_infos = ours.step(actions)[:4], None
        their = theirs.step(actions)
        for one, other in zip(our, their[:4], strict=True):
            assert np.array_equal(one, other) and one.dtype == other.dtype
        ended = our[2] | our[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            one, _ = ours.reset(options={"reset_mask": ended.copy()})
            other, _ = theirs.reset(options={"reset_mask": ended.copy()})
            assert np.array_equal(one, other)


def test_the_last_observation_of_an_episode_is_kept_where_resets_happen_in_the_same_step():
    ours, theirs = pair("windfall/Ece471-v0", AutoresetMode.SAME_STEP)
    ours.reset(seed=1)
    theirs.reset(seed=1)
    for step in range(200):
        infos = ours.step(np.ones(COUNT, dtype=np.int64))[4]
        expected = theirs.step(np.ones(COUNT, dtype=np.int64))[4]
        assert ("final_obs" in infos) == (step == 199) == ("final_obs" in expected)
    for one, other in zip(infos["final_obs"], expected["final_obs"], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_cannot_be_seen(threads):
    def play(threads):
        envs = windfall.make_vec("windfall/Scaling-v0", 7, threads=threads)
        envs.reset(seed=3)
        draw = np.random.default_rng(3)
        return [envs.step(draw.integers(5, size=7))[0] for _ in range(30)]

    for one, other in zip(play(None), play(threads), strict=True):
        assert np.array_equal(one, other)


def test_arrays_are_kept_or_reused_as_asked():
    for copy in (True, False):
        envs = windfall.make_vec("windfall/Ece471-v0", 3, copy=copy)
        first, _ = envs.reset(seed=1)
        second = envs.step(np.array([1, 2, 0]))[0]
        assert (first is second) == (not copy)
        assert np.shares_memory(first, second) == (not copy)


def test_gymnasiums_make_vec_gives_the_native_one():
    envs = gym.make_vec("windfall/Ece471-v0", num_envs=4)
    assert isinstance(envs.unwrapped, windfall.VectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, infos = envs.reset(seed=1)
    assert observations.shape == (4, 6) and infos["action_mask"].shape == (4, 5)
    envs.close()


def test_gymnasiums_wrappers_work_on_it():
    envs = gym.wrappers.vector.RecordEpisodeStatistics(windfall.make_vec("windfall/Ece471-v0", 4))
    envs.reset(seed=1)
    for _ in range(200):
        infos = envs.step(np.zeros(4, dtype=np.int64))[4]
    assert infos["episode"]["l"].tolist() == [200] * 4
