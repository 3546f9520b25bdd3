"""Windfall: learning resource management for serverless platforms.

    import gymnasium, windfall

    env = gymnasium.make("windfall/Scaling-v0")         # one environment
    envs = windfall.make_vec("windfall/Ece471-v0", 256) # many, stepped natively in one call
    rows = windfall.compare([my_policy, "windfall"])    # the honest benchmark, with your policy in it

Everything that takes time is Rust (``windfall._native``); the classes here are thin. The guide is
``docs/guide/python.md`` of the repository.
"""

from __future__ import annotations

from windfall._native import Call, CallOutcome, RunningCall, __version__
from windfall.checkpoints import Policy, export_onnx, load_policy, save_sb3
from windfall.envs import Environment, environments, make
from windfall.load_held import capacity, worlds
from windfall.multi import parallel_env
from windfall.registration import register_all
from windfall.runs import Records, compare, policies, simulate
from windfall.traces import Trace, generate_trace, read_trace
from windfall.vector import VectorEnv, make_vec

__all__ = [
    "Call",
    "CallOutcome",
    "Environment",
    "Policy",
    "Records",
    "RunningCall",
    "Trace",
    "VectorEnv",
    "__version__",
    "capacity",
    "compare",
    "environments",
    "export_onnx",
    "generate_trace",
    "load_policy",
    "make",
    "make_vec",
    "parallel_env",
    "policies",
    "read_trace",
    "register_all",
    "save_sb3",
    "simulate",
    "worlds",
]

register_all()
