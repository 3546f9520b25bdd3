"""Many environments in one call, natively."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv as GymVectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from windfall import _native
from windfall.envs import spaces_of

Observations = NDArray[np.float32]
#: NumPy has one object for it, and asking whether it is that one is ten times faster than comparing.
_INT64 = np.dtype(np.int64)


class VectorEnv(GymVectorEnv[Observations, NDArray[np.int64], NDArray[Any]]):
    """``num_envs`` copies of one environment, stepped in one native call without Python's lock.

    Environment ``i`` behaves exactly like a single one with seed ``seed + i``. All three autoreset modes of Gymnasium
    are there. With ``copy=False`` every call returns the same arrays with new contents; with ``True``, the default,
    they are copied, so that they can be kept. ``threads`` is chosen by how long a step takes; results never
    depend on it.
    """

    def __init__(
        self,
        name: str,
        num_envs: int = 1,
        split: str = "training",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        threads: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode is {render_mode!r}, allowed is None: nothing is drawn")
        mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self.name, self.num_envs, self.autoreset_mode, self.copy = name, num_envs, mode, copy
        self.render_mode = None
        native = _native.VectorEnvironment(name, num_envs, split, mode.value, threads, copy)
        description = json.loads(_native.Environment(name, split).spec_json())
        self.single_observation_space, self.single_action_space = spaces_of(description)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        # Looked up once: a step of 256 tables takes less than ten microseconds.
        self._native, self._step = native, native.step
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._is_seeded = False
        self._everyone = np.ones(num_envs, dtype=np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Starts an episode in all environments, or in those of ``options["reset_mask"]``."""
        chosen = (options or {}).get("reset_mask")
        if chosen is not None and (
            not isinstance(chosen, np.ndarray) or chosen.dtype != np.bool_ or chosen.shape != (self.num_envs,)
        ):
            raise ValueError(f"reset_mask is {chosen!r}, allowed is an array of {self.num_envs} booleans")
        if seed is None and not self._is_seeded:
            seed = int(np.random.default_rng().integers(2**62))
        self._is_seeded = True
        seeds: list[int | None] | None
        if seed is None:
            seeds = None
        elif isinstance(seed, (int, np.integer)):
            seeds = [int(seed) + place for place in range(self.num_envs)]
        else:
            seeds = list(seed)
        rows, _, _, _, masks = self._native.reset(seeds, None if chosen is None else np.ascontiguousarray(chosen))
        present = self._everyone if chosen is None else chosen.copy()
        return rows, {"action_mask": masks, "_action_mask": present}

    def step(
        self, actions: ArrayLike
    ) -> tuple[Observations, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Steps all environments; if one action is not allowed, none is stepped."""
        if type(actions) is not np.ndarray or actions.dtype is not _INT64 or actions.ndim != 1:
            actions = self._whole_numbers(actions)
        rows, rewards, terminated, truncated, masks = self._step(actions)
        infos = {"action_mask": masks, "_action_mask": self._everyone}
        if self._same_step:
            self._add_last(infos, terminated | truncated)
        return rows, rewards, terminated, truncated, infos

    def _add_last(self, infos: dict[str, Any], ended: NDArray[np.bool_]) -> None:
        """Adds the last observations of the episodes that ended in this step."""
        if ended.any():
            finals = self._native.final_observations()
            last = np.full(self.num_envs, None, dtype=object)
            for place in np.flatnonzero(ended):
                last[place] = finals[place].copy()
            infos["final_obs"], infos["_final_obs"] = last, ended

    def close_extras(self, **kwargs: Any) -> None:
        """Frees everything."""
        # Gymnasium also closes what failed to be made.
        native = getattr(self, "_native", None)
        if native is not None:
            native.close()

    def _whole_numbers(self, actions: ArrayLike) -> NDArray[np.int64]:
        given = np.asarray(actions)
        if given.shape != (self.num_envs,):
            raise ValueError(f"actions have shape {given.shape}, expected ({self.num_envs},)")
        if not np.issubdtype(given.dtype, np.integer):
            raise TypeError(f"actions have type {given.dtype}, allowed are whole numbers")
        return given.astype(np.int64)


def make_vec(name: str, num_envs: int = 1, **settings: Any) -> VectorEnv:
    """A :class:`VectorEnv`; ``gymnasium.make_vec(name, num_envs)`` returns the same."""
    return VectorEnv(name, num_envs, **settings)
