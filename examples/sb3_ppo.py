"""PPO of stable-baselines3 on a Windfall environment.

    pip install . "stable-baselines3>=2.5" onnx
    python examples/sb3_ppo.py                                    # Scaling-v0, a few minutes
    python examples/sb3_ppo.py --env windfall/Ece471Direction-v0 --seeds 1 2 3

``windfall/Ece471Direction-v0`` is the faithful table environment with the last direction shown. Its reward depends on
that direction; where it is hidden (``windfall/Ece471-v0``) the same settings stop some points lower.

Prints one line per seed: the mean return over episodes that were not trained on. With ``--out`` the policy is kept as
a checkpoint, which ``windfall evaluate``, ``windfall.load_policy`` and ``windfall.export_onnx`` read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import windfall

#: The faithful table environment. A move shows within a few steps, so the future counts little; much entropy at first,
#: because the best number of containers is found only by walking past it.
TABLE = {"gamma": 0.9, "entropy": (0.05, 0.005), "batch_size": 320}
#: Per environment: what differs from the defaults below. Entropy is paid for from the first number to the second.
SETTINGS = {
    "windfall/Ece471-v0": TABLE,
    "windfall/Ece471Direction-v0": TABLE,
    "windfall/Scaling-v0": {"gamma": 0.9, "entropy": (0.03, 0.003)},
}
USUAL = {"gamma": 0.99, "entropy": (0.01, 0.01), "batch_size": 400, "n_epochs": 10}


def falling(first: float, last: float) -> Callable[[float], float]:
    """From `first` to `last`, evenly; the argument is the share of the training that is left."""
    return lambda left: last + (first - last) * left


class FallingEntropy(BaseCallback):
    """Sets the weight of entropy before every rollout."""

    def __init__(self, first: float, last: float) -> None:
        super().__init__()
        self.weight = falling(first, last)

    def _on_rollout_start(self) -> None:
        self.model.ent_coef = self.weight(self.model._current_progress_remaining)

    def _on_step(self) -> bool:
        return True


def train(name: str, steps: int, seed: int) -> tuple[PPO, VecNormalize]:
    """One training with eight environments, and the normalisation of what it saw."""
    chosen = USUAL | SETTINGS.get(name, {})
    entropy = FallingEntropy(*chosen.pop("entropy"))
    envs = VecNormalize(DummyVecEnv([lambda: windfall.make(name)] * 8), gamma=chosen["gamma"])
    envs.seed(seed)
    rate = falling(1e-3, 1e-5)
    model = PPO("MlpPolicy", envs, n_steps=200, learning_rate=rate, seed=seed, device="cpu", **chosen)
    return model.learn(steps, callback=entropy), envs


class Trained:
    """The model behind its normalisation."""

    def __init__(self, model: PPO, normaliser: VecNormalize) -> None:
        self.model, self.normaliser = model, normaliser

    def predict(self, observation, deterministic=True):
        return self.model.predict(self.normaliser.normalize_obs(observation), deterministic=deterministic)


def evaluate(policy, name: str, split: str = "test", episodes: int = 20) -> list[float]:
    """Returns of whole episodes; in the table environment one for each load, as in the published scores."""
    env = windfall.make(name, split)
    returns = []
    for seed in seeds_of(env, name, episodes):
        observation, info = env.reset(seed=seed)
        total, is_over = 0.0, False
        while not is_over:
            # A checkpoint leaves illegal actions out. The model does not: one that has come to like `down` as much as
            # holding goes on with it where no shares are left to take, at -1 a step.
            masks = {"action_masks": info["action_mask"]} if isinstance(policy, windfall.Policy) else {}
            action, _ = policy.predict(observation, deterministic=True, **masks)
            observation, reward, terminated, truncated, info = env.step(action)
            total, is_over = total + reward, terminated or truncated
        returns.append(total)
    return returns


def seeds_of(env, name: str, episodes: int) -> list[int]:
    """Seeds of the episodes to evaluate on, far from those of a training."""
    if not name.startswith("windfall/Ece471"):
        return [10**6 + place for place in range(episodes)]
    by_rate: dict[float, int] = {}
    for seed in range(10**6, 10**6 + 1000):
        by_rate.setdefault(env.reset(seed=seed)[1]["requests_per_s"], seed)
    return [by_rate[rate] for rate in sorted(by_rate)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--env", default="windfall/Scaling-v0")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", help="where the last seed's checkpoint goes, e.g. ppo.safetensors")
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        model, normaliser = train(arguments.env, arguments.steps, seed)
        returns = evaluate(Trained(model, normaliser), arguments.env)
        row = {"env": arguments.env, "seed": seed, "steps": arguments.steps, "mean_return": float(np.mean(returns))}
        if arguments.out:
            policy = windfall.save_sb3(model, arguments.out, arguments.env, normaliser)
            row["checkpoint_return"] = float(np.mean(evaluate(policy, arguments.env)))
            windfall.export_onnx(policy, f"{arguments.out}.onnx")
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
