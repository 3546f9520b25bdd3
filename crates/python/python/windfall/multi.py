"""PettingZoo: every function has an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from windfall import _native

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv
else:
    try:
        from pettingzoo import ParallelEnv
    except ImportError:  # the environment then works without PettingZoo's class

        class ParallelEnv:
            """Stands in where PettingZoo is not installed."""

            def __class_getitem__(cls, _: Any) -> type:
                return cls


NAMES = ("windfall/MultiScaling-v0", "windfall/MultiScaling-v1")
# Mean load of the cores: v1's is the one at which its oracle meets the objectives.
LOADS = (0.6, 0.81)


class MultiScaling(ParallelEnv[str, NDArray[np.float32], int]):  # type: ignore[misc,unused-ignore]
    """Functions on shared nodes, one agent each; agents are ``function_0``, ``function_1``, ...

    Every agent sees seven numbers of its own function, makes one move per tick of five seconds and is paid for its own
    function. ``infos[agent]["action_mask"]`` says which moves it may make; another one leaves its function as it is and
    sets ``infos[agent]["illegal"]``. Version 0 has as many nodes as the functions need and CPU as a cap; version 1 has a
    fixed set of nodes that functions join, CPU as a weight, and masks from the agent's own ranges only.
    """

    metadata: dict[str, Any] = {"name": NAMES[0], "render_modes": [], "is_parallelizable": True}

    def __init__(
        self,
        functions: int = 5,
        split: str = "training",
        load: float | None = None,
        ticks: int = 200,
        world_seed: int = 0,
        render_mode: str | None = None,
        version: int = 0,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode is {render_mode!r}, allowed is None: nothing is drawn")
        self.render_mode = None
        if version not in (0, 1):
            raise ValueError(f"version is {version!r}, allowed is 0 or 1")
        self.metadata = {**type(self).metadata, "name": NAMES[version]}
        load = LOADS[version] if load is None else load
        self._native = _native.MultiEnvironment(functions, split, load, ticks, world_seed, version)
        self.features, self.actions = self._native.features, self._native.actions
        self.possible_agents = [f"function_{place}" for place in range(functions)]
        self.agents: list[str] = []
        # The change of the arrival rate is the only number that can be negative.
        low = np.array([-1.0 if name == "arrival_change" else 0.0 for name in self.features], dtype=np.float32)
        sees = spaces.Box(low, np.ones(len(self.features), dtype=np.float32), dtype=np.float32)
        # One object for all calls and agents: PettingZoo compares identities.
        self.observation_spaces = {agent: sees for agent in self.possible_agents}
        moves: list[spaces.Space[Any]] = [spaces.Discrete(len(self.actions)) for _ in self.possible_agents]
        self.action_spaces = dict(zip(self.possible_agents, moves, strict=True))
        self._is_seeded = False

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """What ``agent`` sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """What ``agent`` can do."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, dict[str, Any]]]:
        """Starts an episode: of ``seed``, or the next one after the last seed. There are no options."""
        if seed is None and not self._is_seeded:
            seed = int(np.random.default_rng().integers(2**63))
        self._is_seeded = True
        rows, masks = self._native.reset(seed)
        self.agents = list(self.possible_agents)
        return self._by_agent(rows), self._infos(masks, np.zeros(len(rows), dtype=np.bool_))

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, NDArray[np.float32]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Every agent moves and one tick passes."""
        if not self.agents:
            raise RuntimeError("no episode is running: call reset() first")
        absent = [agent for agent in self.agents if agent not in actions]
        if absent:
            raise ValueError(f"actions have no entry for {', '.join(absent)}; every agent must act")
        chosen = np.array([self._action(agent, actions[agent]) for agent in self.agents], dtype=np.int64)
        (rows, masks), rewards, illegal, is_over = self._native.step(chosen)
        agents = self.agents
        answer = (
            self._by_agent(rows),
            dict(zip(agents, rewards.tolist(), strict=True)),
            {agent: False for agent in agents},
            {agent: is_over for agent in agents},
            self._infos(masks, illegal),
        )
        if is_over:
            self.agents = []
        return answer

    def close(self) -> None:
        """Frees everything; twice is as good as once."""
        self._native.close()
        self.agents = []

    def render(self) -> None:
        """Nothing is drawn."""

    def state(self) -> NDArray[np.float32]:
        """There is no view of the whole that is more than the rows of all agents."""
        raise NotImplementedError("concatenate the observations of all agents")

    @property
    def unwrapped(self) -> MultiScaling:
        """Itself."""
        return self

    def _action(self, agent: str, action: Any) -> int:
        try:
            return int(action.__index__())
        except (AttributeError, TypeError):
            most = len(self.actions) - 1
            raise TypeError(f"the action of {agent} is {action!r}, allowed is one whole number from 0 to {most}") from None

    def _by_agent(self, rows: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        return dict(zip(self.possible_agents, rows, strict=True))

    def _infos(self, masks: NDArray[np.bool_], illegal: NDArray[np.bool_]) -> dict[str, dict[str, Any]]:
        numbers = masks.view(np.int8)
        return {
            agent: {"action_mask": numbers[place], "illegal": bool(illegal[place])}
            for place, agent in enumerate(self.possible_agents)
        }


def parallel_env(**settings: Any) -> MultiScaling:
    """``windfall/MultiScaling-v0``, or v1 with ``version=1``, as PettingZoo calls the function that makes a parallel environment."""
    return MultiScaling(**settings)
