"""RLlib on Ray: for trainings that outgrow one machine.

    pip install . "ray[rllib]>=2.40" torch
    python examples/ray_train.py --env windfall/Scaling-v0 --workers 2 --iterations 20
    RAY_ADDRESS=ray://head:10001 python examples/ray_train.py --workers 64     # on a cluster that runs

Each worker plays its own environments; Ray moves what they saw to the learner. Every machine needs the wheel, which
Ray can install from its runtime environment. Prints one JSON line with the return before and after, and of an
agent that acts at random.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

# Ray looks at the working directory of every worker; nothing here needs its reports.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")

import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

import windfall


def random_return(name: str, episodes: int = 20) -> float:
    """Mean return of an agent that takes any action."""
    env, draw, returns = windfall.make(name), np.random.default_rng(1), []
    for seed in range(episodes):
        env.reset(seed=seed)
        total, is_over = 0.0, False
        while not is_over:
            _, reward, terminated, truncated, _ = env.step(int(draw.integers(len(env.actions))))
            total, is_over = total + reward, terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def config(name: str, workers: int, seed: int) -> PPOConfig:
    """PPO with settings that suit episodes of 200 ticks."""
    return (
        PPOConfig()
        .environment(name.replace("/", "-"))
        .env_runners(num_env_runners=workers, num_envs_per_env_runner=4, rollout_fragment_length=200)
        .training(
            gamma=0.9, lr=1e-3, train_batch_size_per_learner=1600 * max(workers, 1), minibatch_size=400, num_epochs=10,
            entropy_coeff=0.01,
        )
        .debugging(seed=seed, log_level="ERROR")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--env", default="windfall/Scaling-v0")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ray.init(log_to_driver=False, include_dashboard=False, ignore_reinit_error=True)
    # Ids with a slash are Gymnasium's; RLlib wants names of its own for factories.
    register_env(arguments.env.replace("/", "-"), lambda _: windfall.make(arguments.env))
    algorithm = config(arguments.env, arguments.workers, arguments.seed).build_algo()
    returns = []
    for _ in range(arguments.iterations):
        runners = algorithm.train()["env_runners"]
        if "episode_return_mean" in runners:
            returns.append(float(runners["episode_return_mean"]))
    algorithm.stop()
    ray.shutdown()
    row = {"env": arguments.env, "workers": arguments.workers, "seed": arguments.seed, "first_return": returns[0]}
    row |= {"mean_return": returns[-1], "random_return": random_return(arguments.env)}
    print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
