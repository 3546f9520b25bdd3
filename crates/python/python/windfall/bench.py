"""Steps per second, in one run: ``python -m windfall.bench``.

Every number is the best of many windows of about a millisecond, because a machine that does other work as well can
only be slower than it is; windows of one length are interrupted equally often. All environments act at random from actions that were drawn beforehand, and start over when an
episode ends. What is compared returns the same: an observation, a reward, two flags, and an action mask where the
environment has one.

| name | what is stepped |
| --- | --- |
| single | ``gymnasium.make("windfall/Ece471-v0")``: the table environment, wrappers included |
| vector256 | 256 of them in one call, as ``windfall.make_vec`` returns them |
| pure_python | the same environment written in Python (``windfall.table``) |
| cartpole | ``gymnasium.make("CartPole-v1")`` |
| envpool, pufferlib | their CartPole, 256 in one call, where they are installed |
| scaling, sizing, concurrency | the environments on simulators, whose steps are much larger |
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import windfall
from windfall.table import PythonTable

#: Environments in a vector.
COUNT = 256
#: Actions that are drawn beforehand.
DRAWN = 4096


#: How long a window should take, seconds; a single slow step takes longer.
WINDOW = 1e-3


def best_rate(run: Callable[[int], int], seconds: float) -> float:
    """Most steps per second in any window; ``run`` repeats something so many times and returns its steps."""

    def timed(times: int) -> tuple[float, int]:
        began = time.perf_counter()
        steps = run(times)
        return time.perf_counter() - began, steps

    times = 1
    while min(timed(times)[0] for _ in range(3)) < WINDOW / 2:
        times *= 2
    best, until = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        took, steps = timed(times)
        best = max(best, steps / took)
    return best


def single(env: gym.Env[Any, Any], seconds: float) -> float:
    """Steps per second of one environment."""
    count = int(env.action_space.n)  # type: ignore[attr-defined]
    actions = np.random.default_rng(0).integers(count, size=DRAWN).tolist()
    env.reset(seed=1)

    def run(times: int) -> int:
        step, reset = env.step, env.reset
        for place in range(times):
            _, _, terminated, truncated, _ = step(actions[place % DRAWN])
            if terminated or truncated:
                reset()
        return times

    rate = best_rate(run, seconds)
    env.close()  # type: ignore[no-untyped-call,unused-ignore]
    return rate


def vector(envs: Any, actions: int, seconds: float, kind: Any = np.int64) -> float:
    """Steps per second of all environments of a vector together."""
    drawn = np.random.default_rng(0).integers(actions, size=(64, COUNT)).astype(kind)
    envs.reset()

    def run(times: int) -> int:
        for place in range(times):
            envs.step(drawn[place % 64])
        return times * COUNT

    rate = best_rate(run, seconds)
    envs.close()
    return rate


def envpool_rate(seconds: float) -> float:
    """EnvPool's CartPole, synchronous."""
    import envpool  # type: ignore[import-not-found,import-untyped,unused-ignore]

    envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=COUNT)
    return vector(envs, 2, seconds, np.int32)


def pufferlib_rate(seconds: float) -> float:
    """PufferLib's native CartPole."""
    from pufferlib.ocean.cartpole import cartpole  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return vector(cartpole.Cartpole(num_envs=COUNT), 2, seconds, np.int32)


def measure(seconds: float) -> dict[str, Any]:
    """All numbers; ``seconds`` are spent on each."""
    result: dict[str, Any] = {
        "single_steps_per_s": single(gym.make("windfall/Ece471-v0"), seconds),
        "vector256_steps_per_s": vector(windfall.make_vec("windfall/Ece471-v0", COUNT), 5, seconds),
        "pure_python_steps_per_s": single(PythonTable(), seconds),
        "cartpole_steps_per_s": single(gym.make("CartPole-v1"), seconds),
    }
    for name, rate in (("envpool", envpool_rate), ("pufferlib", pufferlib_rate)):
        try:
            result[f"{name}_cartpole256_steps_per_s"] = rate(seconds)
        except Exception as error:  # not installed, or another version than the one known here
            result[f"{name}_cartpole256_steps_per_s"] = None
            result[f"{name}_left_out"] = f"{type(error).__name__}: {error}"
    for name in ("Scaling", "Sizing", "Concurrency"):
        env = windfall.make(f"windfall/{name}-v0")
        result[f"{name.lower()}_steps_per_s"] = single(env, seconds)
    envs = windfall.make_vec("windfall/Scaling-v0", COUNT)
    result["scaling256_steps_per_s"] = vector(envs, len(windfall.make("windfall/Scaling-v0").actions), seconds)
    result["vector_over_pure_python"] = result["vector256_steps_per_s"] / result["pure_python_steps_per_s"]
    result["single_over_cartpole"] = result["single_steps_per_s"] / result["cartpole_steps_per_s"]
    versions = {"windfall": windfall.__version__, "gymnasium": gym.__version__, "numpy": np.__version__}
    result["versions"] = versions | {"python": platform.python_version()}
    return result


def main(words: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m windfall.bench", description="Steps per second, in one run.")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print the results")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="time for each number (2)")
    arguments = parser.parse_args(words)
    if not 0.01 <= arguments.seconds <= 3600:
        parser.error(f"--seconds is {arguments.seconds}, allowed is 0.01 to 3600")
    result = measure(arguments.seconds)
    if arguments.format == "json":
        print(json.dumps(result, indent=2))
        return 0
    for name, value in result.items():
        shown = f"{value:,.1f}" if isinstance(value, float) and value < 1000 else value
        print(f"{name:32} {f'{value:,.0f}' if isinstance(value, float) and value >= 1000 else shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
