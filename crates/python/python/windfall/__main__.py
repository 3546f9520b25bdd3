"""The command line of the package: ``python -m windfall``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import windfall
from windfall import bench


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m windfall",
        description="Learning resource management for serverless platforms, from Python.",
        epilog="The program `windfall` of the repository does more: training, reports, reproductions.",
    )
    parser.add_argument("--version", action="version", version=f"windfall {windfall.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("environments", help="list the environments")
    commands.add_parser("policies", help="list the built-in policies")
    compare = commands.add_parser("compare", help="compare policies on the honest benchmark")
    compare.add_argument("policies", nargs="*", default=["histogram", "windfall"], help="names or checkpoints")
    compare.add_argument("--trace", help="folder of the published trace; generated without it")
    compare.add_argument("--loads", type=float, nargs="+", default=[0.8], help="what users reserve over what there is")
    compare.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    compare.add_argument("--minutes", type=int, help="only the first so many minutes")
    compare.add_argument("--format", choices=("text", "json"), default="text")
    onnx = commands.add_parser("export-onnx", help="export the network of a checkpoint")
    onnx.add_argument("checkpoint")
    onnx.add_argument("out")
    measured = commands.add_parser("bench", help="measure steps per second, as python -m windfall.bench does")
    measured.add_argument("rest", nargs=argparse.REMAINDER, help="options of python -m windfall.bench")
    return parser


def _compare(arguments: argparse.Namespace) -> None:
    rows = windfall.compare(
        arguments.policies,
        trace=arguments.trace,
        loads=arguments.loads,
        seeds=arguments.seeds,
        minutes=arguments.minutes,
    )
    print(json.dumps(list(rows), indent=2) if arguments.format == "json" else rows.text)


def _export(arguments: argparse.Namespace) -> None:
    policy: Any = windfall.load_policy(arguments.checkpoint)
    if not isinstance(policy, windfall.Policy):
        raise ValueError(f"{arguments.checkpoint} sizes calls; only policies of environments are exported")
    windfall.export_onnx(policy, arguments.out)
    print(f"{arguments.out}: {policy!r}")


def main(words: list[str] | None = None) -> int:
    """The command line."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["bench"]:
        return bench.main(words[1:])
    parser = _parser()
    arguments = parser.parse_args(words)
    try:
        if arguments.command == "environments":
            print("\n".join(f"{name:36} {what}" for name, what in windfall.environments().items()))
        elif arguments.command == "policies":
            print("\n".join(f"{name:20} {what}" for name, what in windfall.policies().items()))
        elif arguments.command == "compare":
            _compare(arguments)
        elif arguments.command == "export-onnx":
            _export(arguments)
        else:
            parser.print_help()
    except (ValueError, TypeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
