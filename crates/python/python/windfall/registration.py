"""Ids for ``gymnasium.make`` and ``gymnasium.make_vec``.

``import windfall`` registers them. Where nothing imports it, as in a configuration file, the id can name the module:
``gymnasium.make("windfall:windfall/Scaling-v0")``.
"""

from __future__ import annotations

from windfall._native import environment_list


def register_all() -> None:
    """Registers every environment once; a second call changes nothing."""
    from gymnasium.envs import registration

    for name, _ in environment_list():
        if name not in registration.registry:
            registration.register(
                id=name,
                entry_point="windfall.envs:Environment",
                vector_entry_point="windfall.vector:VectorEnv",
                kwargs={"name": name},
            )
