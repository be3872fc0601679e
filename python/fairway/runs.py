"""Records of runs as data frames where pandas is installed, else as dicts of NumPy arrays. `fairway report --csv` reads the runs."""

from __future__ import annotations

import csv
import io
import os
import pathlib
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np

from ._border import InputError
from .program import call


def read_run(folder: str | os.PathLike[str]) -> Any:
    """A run's steps, one row each: step, tokens, train_seconds, step_ms, loss, grad_norm, val_loss, val_bpb and more.

    What a step does not have (val_bpb between two validations) is NaN. A run that still trains is read as far as it is.
    """
    steps, _ = _records([folder])
    if len(steps) != 1:
        raise InputError(f"{os.fspath(folder)}: holds {len(steps)} runs, expected one; read_runs() tells of several")
    return _table(steps[0])


def read_runs(folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Any:
    """One row for each run, of the folders or of a folder of seeds or a sweep: seed, parameters, steps, last loss, bytes, scores."""
    several = [folders] if isinstance(folders, (str, os.PathLike)) else list(folders)
    if not several:
        raise InputError("folders: none, expected the folders of one or more runs")
    return _table(_records(several)[1])


def _records(folders: list[str | os.PathLike[str]]) -> tuple[list[str], str]:
    with tempfile.TemporaryDirectory() as work:
        out = pathlib.Path(work)
        told = call("report", *folders, "--csv", out / "csv", "--out", out / "report.html")
        files = [pathlib.Path(path) for path in told["csv"]]
        texts = [path.read_text("utf-8") for path in files]
    return texts[:-1], texts[-1]


def _table(text: str) -> Any:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    columns = {name: _column([row[i] for row in rows[1:]]) for i, name in enumerate(rows[0])}
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def _column(values: list[str]) -> np.ndarray[Any, Any]:
    for convert, kind in ((int, np.int64), (_number, np.float64), (_truth, np.bool_)):
        try:
            return np.array([convert(value) for value in values], kind)
        except (ValueError, OverflowError):
            continue
    return np.array(values, object)


def _number(value: str) -> float:
    return float(value) if value else float("nan")


def _truth(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError(value)
    return value == "true"
