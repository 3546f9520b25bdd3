"""Runs in the simulator: one policy, or many beside each other, yours among them."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union

import numpy as np

from windfall import _native
from windfall.checkpoints import Policy
from windfall.traces import Trace, scenario_text

#: A built-in policy or a checkpoint by name, a function ``call -> (cores, mib)``, an object with ``size(call)``, or a
#: class of such objects.
PolicyLike = Union[str, "os.PathLike[str]", Callable[..., Any], object]

#: Where calls come from.
TraceLike = Union[Trace, str, "os.PathLike[str]", Mapping[str, Any], None]


class Records(list[dict[str, Any]]):
    """Rows as dictionaries: ``pandas.DataFrame(rows)`` and ``polars.DataFrame(rows)`` take them as they are."""

    #: The comparison as a table for people.
    text: str = ""
    #: Per load and policy: means and intervals over the seeds.
    aggregates: list[dict[str, Any]]
    #: Per load, policy and metric: the difference to ``fixed`` on the same calls, with its interval.
    pairs: list[dict[str, Any]]
    #: Every call of a single run as NumPy columns.
    calls: dict[str, np.ndarray]

    def __init__(self, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)
        self.aggregates, self.pairs, self.calls = [], [], {}


def policies() -> dict[str, str]:
    """Names and one-line summaries of the built-in policies."""
    return dict(_native.policy_list())


class _Function:
    """A function ``call -> (cores, mib)`` as a policy."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.size = function


def _name_of(policy: Any) -> str:
    named = getattr(policy, "name", None)
    if isinstance(named, str):
        return named
    return getattr(policy, "__name__", type(policy).__name__).strip("<>")


def _factory_of(policy: Any) -> Callable[[int], Any]:
    """What makes a fresh policy for one run: runs are parallel and must not learn from each other."""
    if isinstance(policy, type):

        def instance(seed: int) -> Any:
            try:
                return policy(seed=seed)
            except TypeError as error:
                if "seed" not in str(error):
                    raise
                return policy()

        return instance
    if hasattr(policy, "size"):
        return lambda _seed: copy.deepcopy(policy)
    if callable(policy):
        return lambda _seed: _Function(policy)
    raise TypeError(
        f"policy {policy!r} is none: allowed are a name, a checkpoint's path, a function call -> (cores, mib), an object "
        "with size(call), or a class of such objects"
    )


def sorted_out(given: Iterable[PolicyLike]) -> tuple[list[str], dict[str, Callable[[int], Any]]]:
    """Names for the registry, and factories of Python policies by name."""
    names: list[str] = []
    own: dict[str, Callable[[int], Any]] = {}
    for policy in given:
        if isinstance(policy, (str, os.PathLike)):
            names.append(os.fspath(policy))
            continue
        if isinstance(policy, Policy):
            raise TypeError(f"{policy!r} acts in {policy.environment} and does not size calls")
        name = _name_of(policy)
        if name in own or name in policies():
            raise ValueError(f"two policies are called {name!r}; give one of them another `name`")
        own[name] = _factory_of(policy)
    return names, own


def compare(
    policies: Sequence[PolicyLike] = ("fixed", "histogram", "windfall"),
    *,
    trace: TraceLike = None,
    loads: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
    minutes: int | None = None,
    scenario: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> Records:
    """Plays policies on the same calls and compares them: one record per policy, load and seed.

    By default this is the honest benchmark of per-call sizing: functions and hours that nothing was tuned on, at four
    loads and five seeds, generated like Azure's unless ``trace`` is the folder of the published trace. ``minutes``
    shortens it. A :class:`Trace`, a file or a mapping of generator settings is played as it is. ``scenario`` (a
    file, its text, or a mapping) says everything but the policies; ``loads`` and ``seeds`` replace its own.

    ``fixed``, which gives every call what its user reserves, always takes part: the other policies are paired with it
    (``result.pairs``). Results do not depend on ``threads``.
    """
    names, own = sorted_out(policies)
    if "fixed" not in names:
        names.insert(0, "fixed")
    with opened_scenario(trace, minutes, scenario) as (text, called):
        answer, table = _native.run_sweep(text, called, _changes(names, loads, seeds), own, threads)
    result = json.loads(answer)
    records = Records(result["rows"])
    records.aggregates, records.pairs, records.text = result["aggregates"], result["pairs"], table
    return records


def simulate(
    policy: PolicyLike = "windfall",
    *,
    trace: TraceLike = None,
    load: float = 0.8,
    seed: int = 1,
    minutes: int | None = None,
    scenario: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    calls: bool = True,
) -> Records:
    """Plays one policy once: one record, and every call as NumPy columns in ``result.calls``."""
    names, own = sorted_out([policy])
    with opened_scenario(trace, minutes, scenario) as (text, called):
        summary, columns = _native.run_single(text, called, _changes(names or ["fixed"], [load], [seed]), own, calls)
    records = Records([json.loads(summary)])
    records.calls = columns
    return records


def _changes(
    names: list[str], loads: Sequence[float] | None, seeds: Sequence[int] | None
) -> tuple[list[str] | None, list[float] | None, list[int] | None]:
    for load in loads or ():
        # A file's loads are checked when it is read; these come after that.
        if not 0.01 <= load <= 10:
            raise ValueError(f"loads holds {load}, allowed is numbers from 0.01 to 10")
    return (
        names,
        None if loads is None else [float(load) for load in loads],
        None if seeds is None else [int(seed) for seed in seeds],
    )


@contextmanager
def opened_scenario(trace: TraceLike, minutes: int | None, scenario: Any) -> Iterator[tuple[str, str]]:
    """The text of the scenario and what messages call it."""
    if scenario is not None:
        if trace is not None or minutes is not None:
            raise ValueError("scenario already says which calls are played: leave trace and minutes out")
        if isinstance(scenario, Mapping):
            yield scenario_text(scenario), "the scenario"
        elif isinstance(scenario, str) and "\n" in scenario:
            yield scenario, "the scenario"
        else:
            yield Path(scenario).read_text(encoding="utf-8"), os.fspath(scenario)
        return
    if trace is None or (isinstance(trace, (str, os.PathLike)) and Path(trace).is_dir()):
        yield _native.honest_scenario(None if trace is None else os.fspath(trace), minutes), "the honest benchmark"
        return
    with tempfile.TemporaryDirectory(prefix="windfall-") as folder:
        yield scenario_text({"trace": _trace_table(trace, Path(folder), minutes)}), "the arguments"


def _trace_table(trace: Any, folder: Path, minutes: int | None) -> dict[str, Any]:
    if isinstance(trace, Mapping):
        return dict(trace) | ({} if minutes is None else {"minutes": minutes})
    if isinstance(trace, Trace):
        path = folder / "trace.wftrace"
        trace.save(path)
    else:
        path = Path(trace)
    window = {} if minutes is None else {"window_minutes": [0, minutes]}
    return {"path": os.fspath(path), **window}
