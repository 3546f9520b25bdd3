"""The table environment of ECE 471 in pure Python: what the native one is measured against.

It is ``windfall/Ece471-v0`` again, rule by rule (``crates/papers/src/ece471``), written as one would write it in
Python: a table that is looked up, a NumPy array per observation. The tests play both side by side.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

HORIZON = 200
MOST_CONTAINERS = 10
FEWEST_SHARES = 128
SHARES_STEP = 128
#: Containers and CPU shares that each action adds: hold, out, in, up, down.
MOVES = ((0, 0), (1, 0), (-1, 0), (0, SHARES_STEP), (0, -SHARES_STEP))


def _row(containers: int, rate: int) -> tuple[float, float]:
    """Utilisation and SLO preservation of a number of containers at an arrival rate."""
    if containers == 0:
        return 0.0, 0.0
    if (containers, rate) in ((2, 3), (4, 6)):
        return 1.0, 1.0
    utilisation = min(1.0, rate / (1.5 * containers))
    service = 1.5 * min(1.0, 8.0 / containers)
    if rate / containers < service:
        return utilisation, min(1.0, 9.0 * (service - rate / containers))
    return utilisation, 1e-4


ROWS = {(n, rate): _row(n, rate) for n in range(MOST_CONTAINERS + 1) for rate in range(1, 9)}


class PythonTable(gym.Env[NDArray[np.float32], int]):
    """The faithful table environment. ``rate`` fixes the load of every episode."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, rate: int | None = None) -> None:
        self.observation_space = spaces.Box(np.zeros(6, dtype=np.float32), np.ones(6, dtype=np.float32))
        actions: Any = spaces.Discrete(5)  # of which type differs between Gymnasium 1.3 and 1.4
        self.action_space = actions
        self.fixed_rate, self.rate = rate, 6
        self.containers, self.shares, self.last, self.steps = 0, 1024, 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Draws a rate and scales out to four containers; shares survive, as in the original."""
        super().reset(seed=seed)
        self.rate = self.fixed_rate or int(self.np_random.integers(1, 9))
        self.containers, self.last, self.steps = 4, 1, 0
        return self._observation(), {"action_mask": self._mask()}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Acts: 0.3 utilisation + 0.7 SLO preservation, or -1 for what is illegal, turns back or abandons."""
        horizontal, vertical = MOVES[action]
        if vertical:
            legal = self.containers > 0 and self.shares + vertical >= FEWEST_SHARES
        else:
            legal = 0 <= self.containers + horizontal <= MOST_CONTAINERS
        punished = not legal
        if legal:
            self.containers += horizontal
            self.shares += vertical
            punished = horizontal * self.last < 0 or self.containers == 0
            self.last = horizontal
        self.steps += 1
        utilisation, slo = ROWS[self.containers, self.rate]
        reward = -1.0 if punished else 0.3 * utilisation + 0.7 * slo
        return self._observation(), reward, False, self.steps >= HORIZON, {"action_mask": self._mask()}

    def _mask(self) -> NDArray[np.int8]:
        running = self.containers > 0
        legal = [True, self.containers < MOST_CONTAINERS, running, running, running and self.shares > FEWEST_SHARES]
        return np.array(legal, dtype=np.int8)

    def _observation(self) -> NDArray[np.float32]:
        utilisation, slo = ROWS[self.containers, self.rate]
        share = self.containers / 20.0
        return np.array([utilisation, slo, share, 0.0, share, self.rate / 10.0], dtype=np.float32)
