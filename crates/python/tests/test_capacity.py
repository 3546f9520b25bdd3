"""Load held: our policies and Python's on the same machines, records for pandas and polars."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

import windfall
from windfall.traces import scenario_text

#: Two minutes of calls; in so little time cold starts and single calls would decide.
SMALL = {
    "trace": {"functions": 20, "minutes": 3.0, "calls_per_hour": 30000.0},
    "platform": {"cold_starts": False},
    "run": {"warm_up_minutes": 1.0},
}
LENIENT = {"slow_share": 0.05, "violation_share": 0.02}


def small(policies=None, **settings):
    usual = {"scenario": SMALL, "objective": LENIENT, "seeds": [1], "nodes": 2, "precision": 1.3}
    return windfall.capacity(policies, **(usual | settings))


def half(call):
    return call.reserved_cores / 2, call.reserved_mib


def as_reserved(call):
    return call.reserved_cores, call.reserved_mib


def test_records_are_for_pandas_and_polars():
    import pandas
    import polars

    rows = small(["weights", "windfall-admission"], over_commits=[1.0, 2.0], seeds=[1, 2])
    assert list(rows[0]) == ["world", "policy", "over_commit", "seed", "load_held"]
    assert {row["policy"] for row in rows} >= {"fixed", "weights", "weights, ordered", "windfall-admission"}
    frame = pandas.DataFrame(rows)
    assert polars.DataFrame(rows).shape == frame.shape
    assert frame.groupby("policy").load_held.mean()["fixed"] > 0
    best = {row["policy"]: row for row in rows.aggregates}
    assert best["fixed"]["relative_to_fixed"] == 1.0
    assert best["packing bound"]["load_held"] >= best["windfall-admission, ordered"]["load_held"]
    assert polars.DataFrame(rows.aggregates).shape[0] == len(best)
    assert "windfall-admission, ordered" in rows.text


def test_policies_of_python_take_part():
    rows = small([as_reserved, half], threads=1)
    held = {row["policy"]: row["load_held"] for row in rows}
    assert set(held) == {"fixed", "fixed, ordered", "as_reserved", "half"}
    assert held["as_reserved"] == held["fixed"], "who gives what is reserved is `fixed`"
    assert rows == small([as_reserved, half], threads=3), "threads cannot be seen in the result"


def test_an_exception_in_a_policy_is_raised():
    def broken(call):
        raise KeyError("no weights")

    with pytest.raises(KeyError, match="no weights"):
        small([broken])


def test_a_trace_is_a_world_as_well():
    trace = windfall.generate_trace(seed=5, functions=10, minutes=12.0)
    rows = windfall.capacity(["peak"], trace=trace, objective=LENIENT, seeds=[1], precision=1.5)
    # Once for each over-commit that comes near the best.
    assert list(dict.fromkeys(row["policy"] for row in rows)) == ["fixed", "peak-oracle", "peak-oracle, ordered"]
    commits = [(row["policy"], row["over_commit"]) for row in rows]
    assert len(set(commits)) == len(rows)


def test_worlds_have_names():
    assert {"generated", "trace", "huawei"} <= set(windfall.worlds())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policies": ["wieghts"]}, "nobody's name begins with `wieghts`; there are fixed; "),
        ({"objective": {"slow": 0.1}}, "unknown field `slow`"),
        ({"objective": {"slow_share": 2.0}}, "slow_share is 2, allowed is more than 0, at most 1"),
        ({"objective": {"slow_share": float("nan")}}, "slow_share is nan"),
        ({"over_commits": [0.0]}, "over-commits holds 0, allowed is 0.1 to 100"),
        ({"over_commits": [float("inf")]}, "over_commits is inf"),
        ({"precision": 1.0}, "precision is 1, allowed is 1.001 to 2"),
        ({"nodes": 0}, "nodes is 0, allowed is 1 to 10000"),
        ({"seeds": []}, "seeds is empty"),
        ({"settings": {"vpa": {}}}, "names `vpa`, which does not take part"),
        ({"worlds": "generated"}, "leave trace and scenario out"),
        ({"scenario": None, "worlds": "nowhere"}, "worlds holds \"nowhere\", allowed is generated, "),
        ({"scenario": None, "minutes": 3}, "minutes is 3, allowed is 10 to 240"),
    ],
)
def test_settings_that_are_not_allowed_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        small(**settings)


def test_rows_are_those_of_the_program(tmp_path):
    program = os.environ.get("WINDFALL_BIN")
    if not program:
        pytest.skip("WINDFALL_BIN does not name the program; `cargo xtask python` sets it")
    world = tmp_path / "world.toml"
    world.write_text(scenario_text(SMALL | {"name": "small"}))
    words = ["capacity", "--scenario", str(world), "--policies", "peak", "--seeds", "1", "--nodes", "2"]
    words += ["--slow-share", "0.05", "--violation-share", "0.02", "--format", "json", "--out", str(tmp_path / "out")]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = small(["peak"], scenario=world, precision=1.03)
    assert theirs["rows"] == list(ours) and theirs["summary"] == ours.aggregates
