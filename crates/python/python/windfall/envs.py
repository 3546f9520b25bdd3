"""Gymnasium environments, one agent each."""

from __future__ import annotations

import json
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from windfall import _native

Observation = NDArray[np.float32]


def environments() -> dict[str, str]:
    """Ids and one-line summaries of all environments in which one agent acts."""
    return dict(_native.environment_list())


def spaces_of(spec: dict[str, Any]) -> tuple[Any, Any]:
    """Gymnasium's spaces for the features and actions of an environment; their type arguments differ between 1.3 and 1.4."""
    low = np.array([feature["low"] for feature in spec["features"]], dtype=np.float32)
    high = np.array([feature["high"] for feature in spec["features"]], dtype=np.float32)
    return spaces.Box(low, high, dtype=np.float32), spaces.Discrete(len(spec["actions"]))


class Environment(gym.Env[Observation, int]):
    """One of Windfall's environments by its id, such as ``windfall/Scaling-v0``.

    ``split`` chooses which functions and hours are shown: ``training``, ``validation`` or ``test``. Environments
    without held-out parts are the same in all three. ``info["action_mask"]`` says which actions make sense; it is what
    ``action_space.sample(mask)`` and maskable learners take.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, name: str, split: str = "training", render_mode: str | None = None) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode is {render_mode!r}, allowed is None: nothing is drawn")
        self.name, self.split, self.render_mode = name, split, None
        self._native = _native.Environment(name, split)
        description = json.loads(self._native.spec_json())
        self.features: list[str] = [feature["name"] for feature in description["features"]]
        self.actions: list[str] = description["actions"]
        self.observation_space, self.action_space = spaces_of(description)
        self._is_seeded = False
        # The native method itself, in place of the one below: a Python frame would cost a fifth of a step.
        self.step = self._native.step  # type: ignore[method-assign]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode: of ``seed``, or the next one after the last seed. There are no options."""
        super().reset(seed=seed)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(2**63))
        self._is_seeded = True
        return self._native.reset(seed)

    def step(self, action: int) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Acts; see ``actions`` for what the numbers mean."""
        return self._native.step(action)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions make sense now, as sb3-contrib's ``MaskablePPO`` asks for it."""
        return self._native.action_mask()

    def close(self) -> None:
        """Frees everything; twice is as good as once."""
        self._native.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process begins before its first reset.
        return (type(self), (self.name, self.split))


def make(name: str, split: str = "training") -> Environment:
    """An environment without the wrappers that ``gymnasium.make`` puts around it."""
    return Environment(name, split)
