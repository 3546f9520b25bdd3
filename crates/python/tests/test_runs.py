"""Runs: our policies and Python's beside each other, records for pandas and polars, traces in and out."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

import windfall
from windfall.traces import scenario_text

WORLD = {"functions": 20, "minutes": 10.0, "calls_per_hour": 30000.0}


class Half:
    """Half of what the user reserves, and learns nothing."""

    name = "half"

    def size(self, call):
        return call.reserved_cores / 2, call.reserved_mib


class Peaks:
    """The largest peak seen, a quarter more of it; counts what it saw."""

    def __init__(self, seed=0):
        self.peaks = {}

    def size(self, call):
        cores, mib = self.peaks.get(call.function, (call.reserved_cores, call.reserved_mib))
        return min(cores, call.ceiling_cores), max(mib, 1.0), 1.0

    def supervise(self, running):
        assert running.elapsed > 0 and running.granted_cores > 0
        return running.reserved_cores, running.reserved_mib

    def learn(self, outcome):
        assert outcome.run > 0 and outcome.granted_cores > 0
        before = self.peaks.get(outcome.function, (0.0, 0.0))
        seen = (1.25 * outcome.cpu_peak_cores, 1.25 * outcome.memory_peak_mib)
        self.peaks[outcome.function] = tuple(max(pair) for pair in zip(before, seen, strict=True))


def as_reserved(call):
    return call.reserved_cores, call.reserved_mib


def small(policies, **settings):
    return windfall.compare(policies, **({"trace": WORLD, "loads": [0.8], "seeds": [1, 2]} | settings))


def test_a_python_policy_that_gives_the_users_size_is_fixed():
    rows = small([as_reserved, "windfall"])
    assert [row["policy"] for row in rows] == ["fixed", "fixed", "windfall", "windfall", "as_reserved", "as_reserved"]
    for one, other in zip(rows[:2], rows[4:], strict=True):
        for key in ("calls", "core_seconds_granted", "slowdown_p99", "oom_kills"):
            assert one[key] == other[key], key


def test_python_policies_are_judged_beside_ours():
    rows = small([Half(), Peaks, "histogram"], seeds=[1, 2, 3])
    held = {(row["policy"], row["seed"]): row["core_seconds_granted"] for row in rows}
    for seed in (1, 2, 3):
        assert held["Peaks", seed] < held["fixed", seed]
    assert {pair["policy"] for pair in rows.pairs} == {"half", "Peaks", "histogram"}
    assert "Peaks" in rows.text


def test_runs_do_not_depend_on_threads_nor_on_each_other():
    assert small([Peaks, "windfall"], threads=1) == small([Peaks, "windfall"], threads=3)
    assert small([Peaks], seeds=[2])[-1] == small([Peaks], seeds=[1, 2])[-1]


def test_the_honest_benchmark_in_one_line():
    rows = windfall.compare([as_reserved, "windfall"], loads=[0.8], seeds=[1], minutes=2)
    assert [row["policy"] for row in rows] == ["fixed", "windfall", "as_reserved"]


def test_pandas_and_polars_take_records_as_they_are():
    import pandas
    import polars

    rows = small(["windfall"])
    frame = pandas.DataFrame(rows)
    assert frame.groupby("policy").core_seconds_granted.mean()["windfall"] > 0
    assert polars.DataFrame(rows).shape == frame.shape == (4, len(rows[0]))
    run = windfall.simulate("windfall", trace=WORLD)
    assert pandas.DataFrame(run.calls).shape[0] == run[0]["calls"] == polars.DataFrame(run.calls).shape[0]


def test_an_exception_in_a_policy_is_raised_where_it_was_called():
    def broken(call):
        return call.reserved_cores, call.reserved_mib / (0 if call.id == 50 else 1)

    with pytest.raises(ZeroDivisionError):
        small([broken])
    with pytest.raises(ZeroDivisionError):
        windfall.simulate(broken, trace=WORLD)

    class Unmade:
        name = "unmade"

        def __init__(self, seed):
            raise KeyError("no weights")

        def size(self, call):
            return None

    with pytest.raises(KeyError, match="no weights"):
        small([Unmade])


@pytest.mark.parametrize("answer", ["big", (1.0,), (1.0, "2"), 3.0])
def test_an_answer_that_is_no_size_is_named(answer):
    with pytest.raises(TypeError, match="allowed is None, \\(cores, mib\\)"):
        windfall.simulate(lambda call: answer, trace=WORLD)


@pytest.mark.parametrize("answer", [(float("nan"), 100.0), (-1.0, 100.0), (float("inf"), 1.0)])
def test_nonsense_sizes_become_the_users_size_and_are_counted(answer):
    def nonsense(call):
        return answer

    run, fixed = windfall.simulate(nonsense, trace=WORLD), windfall.simulate("fixed", trace=WORLD)
    assert run[0]["fallbacks"] > 0
    assert run[0]["core_seconds_granted"] == fixed[0]["core_seconds_granted"]


def test_what_is_no_policy_is_refused(checkpoint):
    with pytest.raises(TypeError, match="allowed are a name"):
        small([3])
    with pytest.raises(ValueError, match="two policies"):
        small([as_reserved, as_reserved])
    with pytest.raises(TypeError, match="does not size calls"):
        small([checkpoint])


def test_a_scenario_can_be_a_mapping_a_text_or_a_file(tmp_path):
    world = {"trace": WORLD, "cluster": {"loads": [0.9]}, "run": {"seeds": [4], "policies": ["fixed"]}}
    text = "[trace]\nfunctions = 20\nminutes = 10.0\ncalls_per_hour = 30000.0\n[cluster]\nloads = [0.9]\n[run]\nseeds = [4]\npolicies = ['fixed']\n"
    file = tmp_path / "world.toml"
    file.write_text(text)
    mapped = windfall.compare(["fixed"], scenario=world)
    assert [row["load"] for row in mapped] == [0.9] and mapped[0]["seed"] == 4
    assert mapped == windfall.compare(["fixed"], scenario=text) == windfall.compare(["fixed"], scenario=file)
    changed = windfall.compare(["windfall", as_reserved], scenario=file, loads=[0.5], seeds=[1])
    assert [(row["policy"], row["load"], row["seed"]) for row in changed] == [
        ("fixed", 0.5, 1), ("windfall", 0.5, 1), ("as_reserved", 0.5, 1)
    ]


def test_built_in_policies_are_objects():
    policy = windfall.load_policy("fixed")
    assert policy.size(windfall.Call(0, 2.0, 512.0)) == (2.0, 512.0)
    assert "windfall" in windfall.policies() and windfall.load_policy("histogram").name == "histogram"
    cores, mib = windfall.load_policy("faasrm").size(windfall.Call(3, 1.0, 256.0, input=3.0))
    assert cores > 0 and mib > 0


def test_a_trace_goes_through_numpy_arrow_and_a_file(tmp_path):
    import polars
    import pyarrow

    trace = windfall.generate_trace(seed=5, functions=12, minutes=5.0)
    assert len(trace) > 10 and len(trace.functions) == 12
    assert (np.diff(trace.calls["at_ns"].astype(np.int64)) >= 0).all()
    trace.save(tmp_path / "five.wftrace")
    again = windfall.read_trace(tmp_path / "five.wftrace")
    table = trace.to_arrow()
    assert isinstance(table, pyarrow.Table)
    frame = polars.from_arrow(table)
    versions = [again, windfall.Trace.from_arrow(table), windfall.Trace.from_arrow(frame, trace.functions)]
    versions.append(windfall.Trace.from_numpy(trace.to_numpy(), trace.functions, trace.horizon_ns))
    for version in versions:
        assert version.functions == trace.functions
        for name, column in trace.calls.items():
            assert np.array_equal(version.calls[name], column, equal_nan=name == "input"), name
    played = [windfall.simulate("windfall", trace=it)[0] for it in (trace, again)]
    assert played[0] == played[1]


def test_a_changed_trace_is_another_world():
    trace = windfall.generate_trace(seed=5, functions=12, minutes=5.0)
    before = windfall.simulate("fixed", trace=trace)[0]
    trace.calls["work"] = trace.calls["work"] * 2
    assert windfall.simulate("fixed", trace=trace)[0]["core_seconds_used"] > 1.5 * before["core_seconds_used"]


def test_a_trace_that_is_wrong_is_refused(tmp_path):
    trace = windfall.generate_trace(seed=5, functions=3, minutes=5.0)
    for name, column, error, message in [
        ("at_ns", trace.calls["at_ns"][::-1], ValueError, "order"),
        ("function", trace.calls["function"] + 100, ValueError, "no known function"),
        ("work", trace.calls["work"].astype(float), TypeError, "whole numbers"),
        ("cycles", trace.calls["cycles"].astype(int) - 300, ValueError, "allowed is 0 to 255"),
        ("shape", trace.calls["shape"][:-1], ValueError, "length"),
        ("input", trace.calls["input"][None], ValueError, "one dimension"),
    ]:
        wrong = windfall.Trace(trace.functions, trace.calls | {name: column}, trace.horizon_ns)
        with pytest.raises(error, match=message):
            wrong.save(tmp_path / "wrong.wftrace")
    del trace.calls["rise_ns"]
    with pytest.raises(ValueError, match="rise_ns"):
        trace.save(tmp_path / "wrong.wftrace")


def test_rows_are_those_of_the_program(tmp_path):
    program = os.environ.get("WINDFALL_BIN")
    if not program:
        pytest.skip("WINDFALL_BIN does not name the program; `cargo xtask python` sets it")
    world = tmp_path / "world.toml"
    world.write_text(scenario_text({"trace": WORLD}))
    words = ["simulate", "--policy", "windfall", "--load", "0.8", "--seed", "3", "--scenario", str(world)]
    words += ["--journal", "none", "--format", "json", "--out", str(tmp_path / "out")]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = windfall.simulate("windfall", trace=WORLD, load=0.8, seed=3)[0]
    for key, value in ours.items():
        assert theirs[key] == value, key
