"""PPO in one file, in the manner of CleanRL, on Windfall's native vector of environments.

    pip install . torch
    python examples/cleanrl_ppo.py --env windfall/Scaling-v0 --steps 200000

Everything that happens is on this page: rollout, generalised advantages, clipped objective, action masks. The vector
steps all environments in one native call; with NEXT_STEP autoreset the step after an end only resets, and is left out of
the loss.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import windfall


def layer(inputs: int, outputs: int, gain: float) -> nn.Linear:
    """A dense layer with orthogonal weights."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """A policy and a value, 64 - 64 each."""

    def __init__(self, features: int, actions: int) -> None:
        super().__init__()

        def network(outputs: int, gain: float) -> nn.Sequential:
            wide = float(np.sqrt(2))
            return nn.Sequential(
                layer(features, 64, wide), nn.Tanh(), layer(64, 64, wide), nn.Tanh(), layer(64, outputs, gain)
            )

        self.actor, self.critic = network(actions, 0.01), network(1, 1.0)

    def choices(self, rows: torch.Tensor, masks: torch.Tensor) -> Categorical:
        """What the policy would do; actions that make no sense get no probability."""
        return Categorical(logits=self.actor(rows).masked_fill(~masks, -1e8))


def advantages(rewards, values, overs, last, discount: float, smoothing: float) -> torch.Tensor:
    """Generalised advantage estimation, from the last step to the first."""
    result, running = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for step in reversed(range(len(rewards))):
        following = last if step + 1 == len(rewards) else values[step + 1]
        # An episode here is cut off at a horizon and does not end, so that its last state keeps its value; what
        # follows the cut belongs to another episode.
        change = rewards[step] + discount * following - values[step]
        running = change + discount * smoothing * (1.0 - overs[step]) * running
        result[step] = running
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--env", default="windfall/Scaling-v0")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--rollout", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--discount", type=float, default=0.9)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    shuffle = np.random.default_rng(arguments.seed)

    envs = windfall.make_vec(arguments.env, arguments.envs)
    features, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    agent = Agent(features, actions)
    optimiser = torch.optim.Adam(agent.parameters(), lr=arguments.learning_rate, eps=1e-5)
    observation, infos = envs.reset(seed=arguments.seed)
    row, mask = torch.from_numpy(observation), torch.from_numpy(infos["action_mask"]).bool()
    was_over = torch.zeros(arguments.envs)
    returns, finished = np.zeros(arguments.envs), []
    iterations = arguments.steps // (arguments.envs * arguments.rollout)
    began = time.perf_counter()

    for iteration in range(iterations):
        for group in optimiser.param_groups:
            group["lr"] = arguments.learning_rate * (1.0 - iteration / iterations)
        rows, masks, chosen, chances, rewards, overs, counted, values = ([] for _ in range(8))
        for _ in range(arguments.rollout):
            with torch.no_grad():
                choices = agent.choices(row, mask)
                action = choices.sample()
                values.append(agent.critic(row).squeeze(1))
            rows.append(row), masks.append(mask), chosen.append(action), chances.append(choices.log_prob(action))
            counted.append(1.0 - was_over)
            observation, reward, terminated, truncated, infos = envs.step(action.numpy())
            row, mask = torch.from_numpy(observation), torch.from_numpy(infos["action_mask"]).bool()
            was_over = torch.from_numpy((terminated | truncated).astype(np.float32))
            rewards.append(torch.from_numpy(reward.astype(np.float32))), overs.append(was_over)
            returns += reward
            for place in np.flatnonzero(terminated | truncated):
                finished.append(returns[place])
                returns[place] = 0.0
        with torch.no_grad():
            last = agent.critic(row).squeeze(1)
        values_then = torch.stack(values)
        gains = advantages(
            torch.stack(rewards), values_then, torch.stack(overs), last, arguments.discount, 0.95
        )
        targets = gains + values_then
        keep = torch.stack(counted).flatten().bool()
        data = [torch.cat(part)[keep] for part in (rows, masks, chosen, chances)]
        gains, targets = gains.flatten()[keep], targets.flatten()[keep]
        for _ in range(4):
            for batch in np.array_split(shuffle.permutation(len(gains)), 4):
                part = torch.from_numpy(batch)
                choices = agent.choices(data[0][part], data[1][part])
                ratio = (choices.log_prob(data[2][part]) - data[3][part]).exp()
                gain = gains[part]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                loss = loss + 0.5 * (agent.critic(data[0][part]).squeeze(1) - targets[part]).square().mean()
                loss = loss - 0.01 * choices.entropy().mean()
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimiser.step()

    steps = iterations * arguments.envs * arguments.rollout
    first, latest = finished[: arguments.envs], finished[-4 * arguments.envs :]
    row = {"env": arguments.env, "seed": arguments.seed, "steps": steps, "first_returns": float(np.mean(first))}
    row |= {"mean_return": float(np.mean(latest)), "seconds": round(time.perf_counter() - began, 1)}
    print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
