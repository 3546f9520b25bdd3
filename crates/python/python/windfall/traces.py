"""Traces as NumPy columns and Arrow tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windfall import _native

if TYPE_CHECKING:
    import pyarrow

#: Columns of a trace, with their types. Work is in millicore-nanoseconds: one core for one second is 1e12.
COLUMNS: dict[str, Any] = {
    "at_ns": np.uint64,
    "function": np.uint32,
    "work": np.uint64,
    "fixed_ns": np.uint64,
    "parallelism_millicores": np.uint32,
    "memory_base_mib": np.uint32,
    "memory_peak_mib": np.uint32,
    "rise_ns": np.uint64,
    "jumps": np.bool_,
    "cycles": np.uint8,
    "shape": np.uint32,
    "input": np.float32,
}


@dataclass
class Trace:
    """Functions as their users set them up, and every call with its demand; an ``input`` of NaN is none."""

    functions: list[dict[str, Any]]
    calls: dict[str, NDArray[Any]]
    horizon_ns: int

    def __len__(self) -> int:
        return len(self.calls["at_ns"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it in Windfall's own format, which every command and every ``trace=`` reads."""
        columns = {}
        for name, kind in COLUMNS.items():
            if name not in self.calls:
                raise ValueError(f"the column {name!r} is missing; there are {', '.join(self.calls)}")
            columns[name] = _converted(name, self.calls[name], kind)
        _native.write_trace(os.fspath(path), json.dumps(self.functions), int(self.horizon_ns), columns)

    def to_numpy(self) -> dict[str, NDArray[Any]]:
        """The columns themselves, not copies."""
        return self.calls

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table on the same memory; functions and horizon travel in its metadata."""
        import pyarrow

        about = {"functions": json.dumps(self.functions), "horizon_ns": str(self.horizon_ns)}
        table = pyarrow.table({name: pyarrow.array(column) for name, column in self.calls.items()})
        return table.replace_schema_metadata({"windfall": json.dumps(about)})

    @classmethod
    def from_numpy(
        cls, calls: Mapping[str, NDArray[Any]], functions: list[dict[str, Any]], horizon_ns: int | None = None
    ) -> Trace:
        """From columns; without a horizon it ends with its last call."""
        columns = {name: _converted(name, calls[name], kind) for name, kind in COLUMNS.items() if name in calls}
        last = int(columns["at_ns"].max(initial=0))
        return cls(functions, columns, last if horizon_ns is None else horizon_ns)

    @classmethod
    def from_arrow(cls, table: Any, functions: list[dict[str, Any]] | None = None) -> Trace:
        """From an Arrow table, or from anything that has an Arrow stream, such as a polars frame."""
        import pyarrow

        table = table if isinstance(table, pyarrow.Table) else pyarrow.table(table)
        about = json.loads((table.schema.metadata or {}).get(b"windfall", b"{}"))
        functions = functions if functions is not None else json.loads(about.get("functions", "null"))
        if functions is None:
            raise ValueError("the table does not say which functions it is about: pass functions=")
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        horizon = about.get("horizon_ns")
        return cls.from_numpy(columns, functions, None if horizon is None else int(horizon))


def _converted(name: str, column: Any, kind: Any) -> NDArray[Any]:
    given = np.asarray(column)
    if given.ndim != 1:
        raise ValueError(f"the column {name!r} has shape {given.shape}, expected one dimension")
    whole = np.issubdtype(kind, np.integer)
    if whole and not np.issubdtype(given.dtype, np.integer):
        raise TypeError(f"the column {name!r} has type {given.dtype}, expected whole numbers")
    if whole and given.size and (given.min() < 0 or given.max() > np.iinfo(kind).max):
        raise ValueError(f"the column {name!r} holds {given.min()} to {given.max()}, allowed is 0 to {np.iinfo(kind).max}")
    return np.ascontiguousarray(given, dtype=kind)


def read_trace(path: str | os.PathLike[str], seed: int = 1, **options: Any) -> Trace:
    """Reads any trace that Windfall knows: Azure 2019 and 2021, Huawei, or its own format.

    ``options`` are keys of a scenario's ``[trace]``, such as ``window_minutes=[0, 60]`` or ``fold="test"``. What a
    published trace leaves out (cores, memory over time) is drawn from ``seed``.
    """
    return _opened({"path": os.fspath(Path(path)), **options}, seed)


def generate_trace(seed: int = 1, **settings: Any) -> Trace:
    """Generates calls like Azure's: ``functions=200, minutes=60, calls_per_hour=..., start_hour=8``."""
    return _opened(settings, seed)


def _opened(table: dict[str, Any], seed: int) -> Trace:
    functions, horizon, columns = _native.read_trace(scenario_text({"trace": table}), seed)
    return Trace(json.loads(functions), columns, horizon)


def scenario_text(scenario: Mapping[str, Any]) -> str:
    """A mapping as the text of a scenario file."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in scenario.items() if not isinstance(value, Mapping)]
    _write_tables(lines, (), scenario)
    return "\n".join(lines) + "\n"


def _write_tables(lines: list[str], path: tuple[str, ...], table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            lines.append(f"[{'.'.join(_key(part) for part in inner)}]")
            lines.extend(f"{_key(k)} = {_value(v)}" for k, v in value.items() if not isinstance(v, Mapping))
            _write_tables(lines, inner, value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise TypeError(f"{value!r} cannot stand in a scenario: allowed are text, numbers, true and false, lists, mappings")
