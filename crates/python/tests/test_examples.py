"""The examples, run as a reader would run them. Trainings take minutes and are left out unless `--long` is given."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

import windfall

pytestmark = pytest.mark.long
EXAMPLES = ROOT / "examples"


def run(name, *words, cwd):
    program = [sys.executable, str(EXAMPLES / name), *map(str, words)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=cwd, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_stable_baselines3_accepts_every_environment():
    from stable_baselines3.common import env_checker

    for name in windfall.environments():
        env_checker.check_env(windfall.make(name), warn=True)


def test_stable_baselines3_reaches_187_on_the_faithful_table(tmp_path):
    rows = run(
        "sb3_ppo.py", "--env", "windfall/Ece471Direction-v0", "--seeds", 1, 2, 3, "--out", "ppo.safetensors", cwd=tmp_path
    )
    assert len(rows) == 3
    for row in rows:
        # The checkpoint leaves illegal actions out, which the model alone does not.
        assert row["checkpoint_return"] >= 187.0, rows


def test_stable_baselines3_learns_to_scale(tmp_path):
    (row,) = run("sb3_ppo.py", "--steps", 40_000, cwd=tmp_path)
    assert row["mean_return"] > 100.0, row


def test_a_policy_of_stable_baselines3_is_the_same_as_a_checkpoint_and_in_onnx(tmp_path):
    import onnxruntime
    import stable_baselines3 as sb3
    from stable_baselines3.common import vec_env as vec

    name = "windfall/Ece471-v0"
    envs = vec.VecNormalize(vec.DummyVecEnv([lambda: windfall.make(name)] * 2))
    model = sb3.PPO("MlpPolicy", envs, n_steps=64, batch_size=64, seed=1, device="cpu").learn(512)
    policy = windfall.save_sb3(model, tmp_path / "sb3.safetensors", name, envs)
    rows = np.random.default_rng(1).uniform(0, 1, size=(500, 6)).astype(np.float32)
    expected, _ = model.predict(envs.normalize_obs(rows), deterministic=True)
    assert (policy.predict(rows)[0] == expected).mean() > 0.995
    model = windfall.export_onnx(policy)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    scores, _ = session.run(None, {"observation": rows})
    assert np.allclose(scores, policy.scores(rows), atol=2e-5, rtol=1e-5)


def test_the_single_file_learns(tmp_path):
    (row,) = run("cleanrl_ppo.py", "--steps", 60_000, cwd=tmp_path)
    assert row["mean_return"] > row["first_returns"] + 20.0, row


def test_ray_with_two_workers_learns(tmp_path, monkeypatch):
    # Ray's workers are nice by default, and starve where anything else runs.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    (row,) = run("ray_train.py", "--workers", 2, "--iterations", 8, cwd=tmp_path)
    assert row["mean_return"] > row["random_return"] + 50.0, row
