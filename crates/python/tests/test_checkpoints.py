"""Policies as objects, ONNX, and what makes them refuse."""

from __future__ import annotations

import numpy as np
import pytest

import windfall


def rows(count=200):
    return np.random.default_rng(1).uniform(-3, 3, size=(count, 6)).astype(np.float32)


def test_a_policy_predicts_like_a_model_of_stable_baselines(checkpoint):
    many, state = checkpoint.predict(rows())
    assert many.shape == (200,) and many.dtype == np.int64 and state is None
    assert np.array_equal(many, checkpoint.scores(rows()).argmax(axis=1))
    for row, action in zip(rows(), many, strict=True):
        assert checkpoint.predict(row)[0] == action
    env = windfall.make(checkpoint.environment)
    env.step(checkpoint.predict(env.reset(seed=1)[0])[0])


def test_masks_leave_actions_out(checkpoint):
    masks = np.zeros((200, 5), dtype=np.int8)
    masks[:, 3] = 1
    assert (checkpoint.predict(rows(), action_masks=masks)[0] == 3).all()
    assert checkpoint.predict(rows()[0], action_masks=masks[0])[0] == 3


def test_onnxruntime_agrees(checkpoint, tmp_path):
    import onnxruntime

    path = tmp_path / "small.onnx"
    windfall.export_onnx(checkpoint, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    scores, actions = session.run(["scores", "action"], {"observation": rows()})
    assert np.allclose(scores, checkpoint.scores(rows()), atol=2e-5, rtol=1e-5)
    assert np.array_equal(actions, checkpoint.predict(rows())[0])


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.zeros(5), "have 5 numbers, expected 6"),
        (np.zeros((2, 7)), "have 7 numbers, expected 6"),
        (np.zeros((1, 2, 6)), "shape"),
        (np.array([0, 0, np.nan, 0, 0, 0]), "number 2 of observation 0 is NaN"),
    ],
)
def test_observations_that_do_not_fit_are_named(checkpoint, observation, message):
    with pytest.raises(ValueError, match=message):
        checkpoint.predict(observation)


def test_masks_that_do_not_fit_are_named(checkpoint):
    with pytest.raises(ValueError, match="allows no action"):
        checkpoint.predict(rows(), action_masks=np.zeros((200, 5)))
    with pytest.raises(ValueError, match="expected 200 rows of 5"):
        checkpoint.predict(rows(), action_masks=np.ones((199, 5)))
    with pytest.raises(ValueError, match="deterministic"):
        checkpoint.predict(rows(), deterministic=False)


def test_files_that_are_no_checkpoints_are_refused(checkpoint, tmp_path):
    whole = open(checkpoint.path, "rb").read()
    for name, contents in {"cut": whole[:-40], "empty": b"", "noise": bytes(range(256)) * 8}.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=f"{name}.safetensors: "):
            windfall.load_policy(path)


def test_the_program_evaluates_it(checkpoint):
    import json
    import os
    import subprocess

    program = os.environ.get("WINDFALL_BIN")
    if not program:
        pytest.skip("WINDFALL_BIN does not name the program; `cargo xtask python` sets it")
    words = [program, "evaluate", checkpoint.path, "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
