#!/usr/bin/env python3
"""Compare Ixion with other inference engines on this machine: one command, one table.

Every engine's outputs are checked before it is timed. One thread: all engines take turns in one
process. More threads: each has a process, of which only one is not stopped. See README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), *([str(ROOT / "src")] if (ROOT / "src" / "ixion").is_dir() else [])]

from harness import machine, report  # noqa: E402
from harness.compare import compare  # noqa: E402
from harness.engines import DEFAULT, find  # noqa: E402
from harness.networks import NoModels, choose, materialise  # noqa: E402
from harness.picture import bars  # noqa: E402

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    add = parser.add_argument
    add(
        "--models",
        type=Path,
        default=ROOT.parent / "shared" / "models",
        help="folder of network skeletons (default: ../shared/models beside the repository)",
    )
    add("--networks", type=_list, default=[], help="names, separated by commas (default: all 24)")
    add("--engines", type=_list, default=list(DEFAULT), help=f"default: {','.join(DEFAULT)}")
    add("--threads", type=_counts, default=[1, 2], help="numbers of threads (default: 1,2)")
    add(
        "--seconds",
        type=float,
        default=8.0,
        help="measuring time for each network and number of threads (default: 8)",
    )
    add(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "ixion-benchmarks",
        help="where networks with weights, conversions and caches are kept (some GB)",
    )
    add(
        "--out",
        type=Path,
        default=HERE / "results",
        help="folder for results.json and ratios.svg (default: benchmarks/results)",
    )
    add("--json", action="store_true", help="print the results as JSON instead of tables")
    add("--resume", action="store_true", help="keep networks that results.json already has")
    add("--report", action="store_true", help="measure nothing: show results.json again")
    add("--update-readme", action="store_true", help="rewrite the results section of README.md")
    return parser.parse_args(argv)  # fmt: skip


def _list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _counts(text: str) -> list[int]:
    counts = [int(part) for part in _list(text)]
    if not counts or min(counts) < 1:
        raise argparse.ArgumentTypeError("expected numbers of threads such as 1,2")
    return counts


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all networks, writing results.json after each."""
    names = choose(options.models, options.networks)
    missing = {name: find(name).missing() for name in options.engines}
    engines = [name for name in options.engines if missing[name] is None]
    options.work.mkdir(parents=True, exist_ok=True)
    document = start(options, engines)
    document["missing"] = {name: why for name, why in missing.items() if why is not None}
    for name in names:
        if name in document["networks"]:
            continue
        _say(f"{name}: materialising")
        network = materialise(options.models, name, options.work)
        document["networks"][name] = compare(
            network, engines, options.threads, options.seconds, options.work, _say
        )
        save(document, options.out)
    return document


def start(options: argparse.Namespace, engines: list[str]) -> dict[str, Any]:
    """A document without networks, or the stored one where it continues."""
    stored = options.out / "results.json"
    if options.resume and stored.exists():
        document: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8"))
        if (document["engines"], document["threads"]) == (engines, options.threads):
            return document
        raise SystemExit(f"{stored} has other engines or threads: cannot resume it")
    _say("measuring the peak")
    return {
        "machine": machine.describe(engines),
        "engines": engines,
        "threads": options.threads,
        "seconds": options.seconds,
        "peak_gflops": machine.peaks(engines, options.threads, options.work / "cache" / "peak"),
        "networks": {},
    }


def save(document: dict[str, Any], out: Path) -> None:
    """results.json and ratios.svg."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1) + "\n"
    (out / "results.json").write_text(text, encoding="utf-8")
    (out / "ratios.svg").write_text(bars(document), encoding="utf-8")


def update_readme(document: dict[str, Any], path: Path, picture: Path) -> None:
    """Put the tables, and the picture if it lies below, between the markers of a Markdown file.

    Raises ValueError without markers.
    """
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{path} has no single pair of {BEGIN} and {END}")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    parts = [BEGIN, report.markdown(document), END]
    if picture.exists() and picture.is_relative_to(path.parent):
        place = picture.relative_to(path.parent).as_posix()
        parts.insert(1, f"![time of Ixion over time of the fastest peer]({place})")
    section = "\n\n".join(parts)
    path.write_text(before + section + after, encoding="utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    try:
        if options.report:
            document = json.loads((options.out / "results.json").read_text(encoding="utf-8"))
        else:
            document = measure(options)
    except (NoModels, LookupError, OSError) as error:
        _say(f"error: {error}")
        return 2
    if options.json:
        print(json.dumps(document))
    else:
        report.show(document)
    if options.update_readme:
        update_readme(document, HERE / "README.md", options.out.resolve() / "ratios.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
