"""Load held at equal service: how much load the same machines carry while an objective holds."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from windfall import _native
from windfall.runs import PolicyLike, Records, TraceLike, opened_scenario, sorted_out


def worlds() -> dict[str, str]:
    """Names and one-line summaries of the worlds that :func:`capacity` knows."""
    return dict(_native.capacity_worlds())


def capacity(
    policies: Sequence[PolicyLike] | None = None,
    *,
    worlds: str | Sequence[str] | None = None,
    trace: TraceLike = None,
    scenario: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    minutes: int | None = None,
    data: str | os.PathLike[str] | None = None,
    nodes: int | None = None,
    mib_per_core: float | None = None,
    cpu_model: str = "kernel",
    everybody: bool = False,
    over_commits: Sequence[float] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    objective: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    precision: float = 1.03,
    threads: int | None = None,
) -> Records:
    """Raises the load until service breaks the objective: one record per world, policy, over-commit and seed.

    ``load_held`` is the highest load at which the objective held. ``result.aggregates`` has every policy at its best
    over-commit with its ratios to ``fixed`` and to the best incumbent, ``result.text`` the same as a table. It is what
    the program's ``windfall capacity`` prints.

    ``policies`` are beginnings of names (``"weights"`` is also ``"weights, ordered"``, with our queue order) and
    policies of your own, as :func:`windfall.compare` takes them; ``fixed`` always takes part. Without them the strongest
    of each kind play, with ``everybody=True`` all. ``worlds`` are names from :func:`windfall.worlds`, ``"generated"``
    if nothing is said; ``trace`` or ``scenario`` take their place, as in :func:`windfall.compare`. ``data`` is the folder
    of the published traces (otherwise the environment variable ``WINDFALL_DATA``).

    ``objective`` replaces some of ``slow_share`` (0.01), ``slow_above`` (2.0), ``in_every_class`` (True),
    ``violation_share`` (0.001) and ``longest_wait_seconds`` (60). ``settings`` are by policy, for instance
    ``{"windfall-admission": {"z": 0.25}}``. ``cpu_model`` is ``"kernel"`` or ``"fluid"``, which shares CPU at constant
    rates. The two loads around the answer differ by a ratio of ``precision`` at most.
    """
    if worlds is not None and (trace is not None or scenario is not None):
        raise ValueError("worlds says which calls are played: leave trace and scenario out")
    names, own = sorted_out(policies or ())
    question: dict[str, Any] = {
        "worlds": [],
        "scenario": None,
        "data": os.fspath(data if data is not None else os.environ.get("WINDFALL_DATA", "data")),
        "minutes": 30 if minutes is None else minutes,
        "nodes": nodes,
        "mib_per_core": mib_per_core,
        "cpu_model": cpu_model,
        "choice": {
            "policies": names,
            "all": everybody,
            "over_commits": [float(factor) for factor in over_commits],
            "settings": {policy: dict(table) for policy, table in (settings or {}).items()},
        },
        "objective": dict(objective or {}),
        "seeds": [int(seed) for seed in seeds],
        "precision": precision,
    }
    _check_numbers({"precision": precision, "mib_per_core": mib_per_core, **question["objective"]})
    _check_numbers({"over_commits": factor for factor in question["choice"]["over_commits"] if not math.isfinite(factor)})
    with ExitStack() as stack:
        if trace is None and scenario is None:
            chosen = "generated" if worlds is None else worlds
            question["worlds"] = [chosen] if isinstance(chosen, str) else list(chosen)
        else:
            # A trace in memory is a file as long as it is played.
            question["scenario"] = stack.enter_context(opened_scenario(trace, minutes, scenario))
        answer, table = _native.run_capacity(json.dumps(question), own, threads)
    result = json.loads(answer)
    records = Records(result["rows"])
    records.aggregates, records.text = result["summary"], table
    return records


def _check_numbers(named: Mapping[str, Any]) -> None:
    """JSON has no NaN, and a message about JSON would help nobody."""
    for name, value in named.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} is {value}, allowed is a finite number")
