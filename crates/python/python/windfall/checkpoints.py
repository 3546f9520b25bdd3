"""Trained policies as plain objects, in and out of other libraries."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windfall import _native

if TYPE_CHECKING:
    import onnx

#: Normalised observations are cut to this range, in Windfall as in stable-baselines3.
BOUND = 10.0


class Policy:
    """A trained policy of an environment, from a file of ``windfall train`` or of :func:`save_sb3`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._native = _native.Policy(self.path)
        #: What the file says about itself: algorithm, environment, network, steps, settings.
        self.header: dict[str, Any] = json.loads(self._native.header_json())
        #: The id of the environment it was trained in.
        self.environment: str = self.header["environment"]["id"]
        #: Names of the numbers it sees.
        self.features: list[str] = [feature["name"] for feature in self.header["environment"]["features"]]
        #: Names of its actions.
        self.actions: list[str] = self.header["environment"]["actions"]
        #: Whether it was trained with action masks.
        self.masks: bool = self._native.masks

    def predict(
        self,
        observation: ArrayLike,
        state: None = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: ArrayLike | None = None,
    ) -> tuple[Any, None]:
        """The action for an observation, or one for each row; called like a model of stable-baselines3.

        It always takes the action with the largest score; ``deterministic=False`` is refused.
        """
        if not deterministic:
            raise ValueError("deterministic is False, allowed is True: a checkpoint decides without exploring")
        rows = np.asarray(observation, dtype=np.float32)
        masks = None if action_masks is None else np.atleast_2d(np.asarray(action_masks)).astype(np.bool_)
        if rows.ndim not in (1, 2):
            raise ValueError(f"the observation has shape {rows.shape}, expected one row or a matrix of rows")
        chosen = self._native.decide(np.atleast_2d(rows), masks)
        return (np.int64(chosen[0]) if rows.ndim == 1 else chosen), None

    def scores(self, observation: ArrayLike) -> NDArray[np.float32]:
        """One number per action, the largest of which is chosen."""
        rows = np.asarray(observation, dtype=np.float32)
        scores = self._native.scores(np.atleast_2d(rows))
        return cast(NDArray[np.float32], scores[0] if rows.ndim == 1 else scores)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything in the file by name; weights are ``outputs x inputs``, as PyTorch has them."""
        return self._native.tensors()

    def __repr__(self) -> str:
        return f"Policy({self.path!r}, {self.header['algorithm']} in {self.environment})"


def load_policy(path: str | os.PathLike[str]) -> Policy | _native.SizingPolicy:
    """A trained policy from its file, or a built-in one by its name.

    A checkpoint of an environment becomes a :class:`Policy` with ``predict``. Names such as ``"windfall"``, and
    checkpoints that size calls, become objects with ``size(call)``; :func:`windfall.compare` takes their names.
    """
    name = os.fspath(path)
    if not name.endswith(".safetensors"):
        return _native.SizingPolicy(name)
    try:
        return Policy(name)
    except ValueError as error:
        # A file for sizing calls is no policy of an environment, and says so; if it is neither, the first reason counts.
        try:
            return _native.SizingPolicy(name)
        except ValueError:
            raise error from None


def export_onnx(policy: Policy, path: str | os.PathLike[str] | None = None) -> onnx.ModelProto:
    """The network with its normalisation as an ONNX model, written to ``path`` if one is given.

    Input ``observation`` (rows x features); outputs ``scores`` (rows x actions) and ``action`` (rows). Needs the
    package ``onnx``.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    network = policy.header["network"]
    if network is None:
        raise ValueError(f"{policy!r} is a table; only networks can be exported")
    tensors = policy.tensors()
    deciding = "averaged" if "averaged.0.weight" in tensors else "actor"
    mean, scale = _normalisation(tensors)
    constants = {
        "mean": mean,
        "scale": scale,
        "low": np.float32(-BOUND),
        "high": np.float32(BOUND),
    }
    nodes = [
        helper.make_node("Sub", ["observation", "mean"], ["centred"]),
        helper.make_node("Mul", ["centred", "scale"], ["scaled"]),
        helper.make_node("Clip", ["scaled", "low", "high"], ["layer.0"]),
    ]
    layers = len(network["hidden"]) + 1
    for place in range(layers):
        weight, bias = f"{deciding}.{place}.weight", f"{deciding}.{place}.bias"
        constants[weight], constants[bias] = tensors[weight], tensors[bias]
        is_last = place + 1 == layers
        out = "scores" if is_last else f"sum.{place}"
        nodes.append(helper.make_node("Gemm", [f"layer.{place}", weight, bias], [out], transB=1))
        if not is_last:
            kind = {"tanh": "Tanh", "relu": "Relu"}[network["activation"]]
            nodes.append(helper.make_node(kind, [out], [f"layer.{place + 1}"]))
    nodes.append(helper.make_node("ArgMax", ["scores"], ["action"], axis=1, keepdims=0))
    graph = helper.make_graph(
        nodes,
        policy.environment,
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["rows", len(policy.features)])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", len(policy.actions)]),
            helper.make_tensor_value_info("action", TensorProto.INT64, ["rows"]),
        ],
        [numpy_helper.from_array(np.asarray(value, dtype=np.float32), name) for name, value in constants.items()],
    )
    # Opset 17 and version 8 are read by every runtime since 2022.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="windfall", ir_version=8)
    helper.set_model_props(model, {"features": json.dumps(policy.features), "actions": json.dumps(policy.actions)})
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        onnx.save(model, os.fspath(path))
    return model


def _normalisation(tensors: dict[str, NDArray[Any]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    count = max(float(tensors["observations.count"][0]), 1.0)
    variance = tensors["observations.spread"] / count
    deviation = np.where(variance > 1e-12, np.sqrt(variance), 1.0)
    return tensors["observations.mean"].astype(np.float32), (1.0 / deviation).astype(np.float32)


def save_sb3(model: Any, path: str | os.PathLike[str], environment: str, normaliser: Any = None) -> Policy:
    """Writes the policy of a stable-baselines3 model as a checkpoint, and opens it.

    ``model`` is a PPO, A2C or MaskablePPO with an ``MlpPolicy`` on discrete actions; ``normaliser`` is the
    ``VecNormalize`` it was trained behind, if there was one. ``windfall evaluate`` then reports its score, and
    :func:`export_onnx` exports it.
    """
    layers, activation = _layers_of(model.policy)
    width = layers[0][0].shape[1]
    mean, variance, count = np.zeros(width), np.ones(width), 0.0
    if normaliser is not None and normaliser.norm_obs:
        if normaliser.clip_obs != BOUND:
            raise ValueError(f"clip_obs is {normaliser.clip_obs}, allowed is {BOUND}")
        # stable-baselines3 divides by sqrt(variance + epsilon).
        mean, variance = normaliser.obs_rms.mean, normaliser.obs_rms.var + normaliser.epsilon
        count = float(normaliser.obs_rms.count)
    _native.save_network(
        os.fspath(path),
        environment,
        "ppo",
        activation,
        layers,
        ([float(number) for number in mean], [float(number) for number in variance], count),
        int(model.num_timesteps),
    )
    return Policy(path)


def _layers_of(policy: Any) -> tuple[list[tuple[NDArray[np.float32], NDArray[np.float32]]], str]:
    """Weights of the policy network from its first layer to the scores, and its activation."""
    try:
        modules = [*policy.mlp_extractor.policy_net, policy.action_net]
    except AttributeError:
        raise ValueError(f"{type(policy).__name__} has no policy network of layers; allowed is MlpPolicy") from None
    names = [type(module).__name__ for module in modules]
    activations = sorted({name for name in names if name != "Linear"})
    if activations not in (["Tanh"], ["ReLU"]):
        raise ValueError(f"the network has {', '.join(activations) or 'no'} activations, allowed is Tanh or ReLU alone")
    if names != [name for _ in range(len(names) // 2) for name in ("Linear", activations[0])] + ["Linear"]:
        raise ValueError(f"the network is {' '.join(names)}; allowed is Linear and {activations[0]} in turn")
    layers = [
        (
            module.weight.detach().cpu().numpy().astype(np.float32),
            module.bias.detach().cpu().numpy().astype(np.float32),
        )
        for module in modules
        if type(module).__name__ == "Linear"
    ]
    return layers, activations[0].lower()
