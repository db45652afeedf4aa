"""Reads runs of Assay into tables: Arrow, pandas, polars, or rows of plain Python.

    import assay

    run = assay.read("results/20261121T190211Z-pg")
    run.polars("steps")          # or pandas, arrow, rows
    run.verdicts()               # what is faster or slower than the base
    run.profiles()               # CPU profiles as call stacks

The command `assay export` makes all tables, so that they are those of `docs/export.md`, and nothing
is computed a second time. Only `rows` needs no other package.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Sequence, Union

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["AssayError", "Run", "Stack", "read"]

Table = Literal["steps", "metrics", "verdicts", "seconds", "samples", "latencies"]
PathLike = Union[str, "os.PathLike[str]"]


class AssayError(Exception):
    """The command `assay` failed; the text is what it printed."""


class Stack(NamedTuple):
    """A call stack of a CPU profile."""

    functions: tuple[str, ...]
    """The functions, the outermost first."""
    samples: int
    """The number of samples."""


class Run:
    """One run or several, whose tables are made when they are asked for."""

    def __init__(self, paths: Sequence[PathLike], command: PathLike | None = None) -> None:
        self._paths = [os.fspath(path) for path in paths]
        self._command = os.fspath(command) if command is not None else _command()

    def arrow(self, table: Table = "steps") -> pyarrow.Table:
        """Returns a table of Arrow; needs `pyarrow`."""
        from pyarrow import parquet

        return parquet.read_table(io.BytesIO(self._export(table, "parquet")))

    def pandas(self, table: Table = "steps") -> pandas.DataFrame:
        """Returns a table of pandas; needs `pandas` and `pyarrow`."""
        import pandas

        return pandas.read_parquet(io.BytesIO(self._export(table, "parquet")))

    def polars(self, table: Table = "steps") -> polars.DataFrame:
        """Returns a table of polars; needs `polars`."""
        import polars

        return polars.read_parquet(io.BytesIO(self._export(table, "parquet")))

    def rows(self, table: Table = "steps") -> list[dict[str, str | None]]:
        """Returns a table as rows of texts; values that are not applicable are `None`."""
        text = self._export(table, "csv").decode()
        rows = csv.DictReader(io.StringIO(text, newline=""))
        return [{name: value or None for name, value in row.items()} for row in rows]

    def verdicts(self) -> list[dict[str, str | None]]:
        """Returns the comparisons with the base as rows."""
        return self.rows("verdicts")

    def series(self) -> list[dict[str, str | None]]:
        """Returns the seconds of each step and kind of operation as rows."""
        return self.rows("seconds")

    def samples(self) -> list[dict[str, str | None]]:
        """Returns the seconds of each counter of the engine and column of the host as rows."""
        return self.rows("samples")

    def latencies(self) -> list[dict[str, str | None]]:
        """Returns the buckets of the latency histograms of each step and kind of operation."""
        return self.rows("latencies")

    def histograms(self) -> dict[str, str]:
        """Returns the latencies of each cell, as logs of HdrHistogram by their names."""
        with tempfile.TemporaryDirectory() as folder:
            self._run(["--format", "hdr", "--output", folder])
            logs = sorted(Path(folder).rglob("*.hlog"))
            return {str(log.relative_to(folder)): log.read_text() for log in logs}

    def profiles(self) -> list[Stack]:
        """Returns the call stacks of all CPU profiles."""
        stacks = []
        for line in self._run(["--format", "folded"]).decode().splitlines():
            functions, _, samples = line.rpartition(" ")
            stacks.append(Stack(tuple(functions.split(";")), int(samples)))
        return stacks

    def _export(self, table: Table, form: str) -> bytes:
        return self._run(["--format", form, "--table", table])

    def _run(self, options: Sequence[str]) -> bytes:
        # A run whose name begins with a hyphen is no option.
        command = [self._command, "export", *options, "--", *self._paths]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        if ended.returncode != 0:
            raise AssayError(ended.stderr.decode(errors="replace").strip())
        return ended.stdout

    def __repr__(self) -> str:
        return f"assay.Run({self._paths!r})"


def read(*runs: PathLike, command: PathLike | None = None) -> Run:
    """Returns runs, by the paths or short names that the command `assay` takes, such as `latest`.

    `command` is the program `assay`, which comes with this package.
    """
    if not runs:
        raise ValueError("name at least one run, such as assay.read('latest')")
    return Run(runs, command)


def _command() -> str:
    """Returns the program beside this package, or the one on PATH."""
    own = Path(sysconfig.get_path("scripts")) / "assay"
    found: Any = str(own) if own.is_file() else shutil.which("assay")
    if found is None:
        raise AssayError("the program `assay` is not on PATH")
    return found
