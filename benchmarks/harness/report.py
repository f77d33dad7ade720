"""Results as tables: for a terminal, for Markdown, and the figures that decide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.engines import find, is_peer

Document = Mapping[str, Any]
Table = tuple[str, list[str], list[list[str]]]


def geometric_mean(values: Sequence[float]) -> float:
    """The mean that makes ratios and their inverses agree; NaN of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def ratios(document: Document, threads: str) -> dict[str, float]:
    """Ours / fastest peer, by network."""
    networks = document["networks"]
    return {
        name: entry["ratio"][threads]["value"]
        for name, entry in networks.items()
        if threads in entry.get("ratio", {})
    }


def tables(document: Document) -> list[Table]:
    """Times and ratios for each number of threads, then loading and memory, then failures."""
    found = [_times(document, count) for count in document["threads"]]
    found.append(_loading(document))
    failures = _failures(document)
    return [*found, failures] if failures[2] else found


def _times(document: Document, count: int) -> Table:
    key, engines = str(count), document["engines"]
    own = [engine for engine in engines if not is_peer(engine)]
    title = f"{count} thread{'s' * (count > 1)}: median ms a run"
    heads = ["network", "GFLOP", *engines, "ours / fastest", *(f"{e} of peak" for e in own)]
    rows = [
        [name, f"{entry['gflop']:.4g}", *(_ms(entry, engine, key) for engine in engines),
         _ratio(entry, key), *(_share(document, entry, engine, key) for engine in own)]
        for name, entry in document["networks"].items()
    ]  # fmt: skip
    mean = geometric_mean(list(ratios(document, key).values()))
    blank = [""] * len(engines)
    if not math.isnan(mean):
        rows.append(["geometric mean", "", *blank, f"{mean:.3f}", *([""] * len(own))])
    return title, heads, rows


def _ms(entry: Document, engine: str, key: str) -> str:
    found = entry["engines"].get(engine, {}).get(key, {})
    return f"{found['ms']:.4g}" if "ms" in found else "-"


def _ratio(entry: Document, key: str) -> str:
    found = entry.get("ratio", {}).get(key)
    return f"{found['value']:.3f} ({found['against']})" if found else "-"


def _share(document: Document, entry: Document, engine: str, key: str) -> str:
    """GFLOP/s of the network's own operations, and their share of the multiply-add peak."""
    ms = entry["engines"].get(engine, {}).get(key, {}).get("ms")
    if ms is None:
        return "-"
    rate = entry["gflop"] / ms * 1e3
    peak = document["peak_gflops"].get(find(engine).target, {}).get(key)
    return f"{rate / peak:.0%} ({rate:.1f} GFLOP/s)" if peak else f"({rate:.1f} GFLOP/s)"


def _loading(document: Document) -> Table:
    """Seconds to load (ours: compile cold, and from the cache) and MB of load plus one run."""
    engines = document["engines"]
    heads = ["network"]
    for engine in engines:
        heads += [f"{engine} s", *([] if is_peer(engine) else ["cached s"]), f"{engine} MB"]
        heads += [] if is_peer(engine) else ["cached MB"]
    rows = []
    for name, entry in document["networks"].items():
        row = [name]
        for engine in engines:
            found = entry["engines"].get(engine, {})
            parts = ["load_s", "cached_load_s", "peak_bytes", "cached_peak_bytes"]
            if is_peer(engine):
                parts = ["load_s", "peak_bytes"]
            row += [_amount(found, part) for part in parts]
        rows.append(row)
    return "loading in a fresh process, and peak memory of loading plus one run", heads, rows


def _amount(found: Document, part: str) -> str:
    if part not in found:
        return "-"
    return f"{found[part] / 1e6:.0f}" if part.endswith("bytes") else f"{found[part]:.3f}"


def _failures(document: Document) -> Table:
    rows = []
    for name, entry in document["networks"].items():
        for engine, found in entry["engines"].items():
            reasons = [found, *(found.get(str(count), {}) for count in document["threads"])]
            rows += [[name, engine, one["reason"]] for one in reasons if "reason" in one]
    rows += [["all", engine, reason] for engine, reason in document.get("missing", {}).items()]
    return "not measured", ["network", "engine", "reason"], rows


def remarks(document: Document) -> list[str]:
    """The machine, versions, peaks and call overhead, a line each."""
    machine = document["machine"]
    versions = ", ".join(f"{name} {text}" for name, text in machine["versions"].items())
    found = [f"{machine['cpu']}, {machine['cores']} cores; {machine['system']}", versions]
    for target, by_threads in document["peak_gflops"].items():
        rates = ", ".join(f"{rate:.1f} at {n}" for n, rate in by_threads.items())
        found.append(f"measured multiply-add peak ({target}), GFLOP/s by threads: {rates}")
    overhead = document["networks"].get("mlp", {}).get("overhead")
    if overhead:
        found.append(
            f"call overhead on mlp: {overhead['overhead_us']:.2f} us "
            f"(exe.run {overhead['run_us']:.2f} us, native call {overhead['native_us']:.2f} us)"
        )
    for count in document["threads"]:
        known = ratios(document, str(count))
        above = [name for name, ratio in known.items() if ratio > 1]
        if known:
            mean, slower = geometric_mean(list(known.values())), ", ".join(above) or "none"
            found.append(
                f"{count} thread{'s' * (count > 1)}: geometric mean of ours / fastest peer "
                f"{mean:.3f} over {len(known)} networks; above 1: {slower}"
            )
    return found


def plain(document: Document) -> str:
    """Tables of aligned columns, for any terminal."""
    parts = []
    for title, heads, rows in tables(document):
        lines = [heads, *rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
        texts = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
        parts.append("\n".join([title, *(text.rstrip() for text in texts)]))
    return "\n\n".join([*parts, "\n".join(remarks(document))])


def markdown(document: Document) -> str:
    """The same as Markdown."""
    parts = ["\n".join(f"- {remark}" for remark in remarks(document))]
    for title, heads, rows in tables(document):
        rule = ["---", *["---:"] * (len(heads) - 1)]
        lines = (f"| {' | '.join(line)} |" for line in (heads, rule, *rows))
        parts.append(f"**{title[0].upper()}{title[1:]}**\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def show(document: Document) -> None:
    """Print the tables, with rich where it is installed and a terminal is there."""
    try:
        from rich.console import Console
        from rich.table import Table as Grid
    except ImportError:
        print(plain(document))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        print(plain(document))
        return
    for title, heads, rows in tables(document):
        grid = Grid(title=title, title_justify="left")
        for number, head in enumerate(heads):
            grid.add_column(head, justify="right" if number else "left")
        for row in rows:
            grid.add_row(*row)
        console.print(grid)
    console.print("\n".join(remarks(document)))
