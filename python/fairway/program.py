"""The program `fairway` that this package brings, called where its arithmetic is wanted and no second copy of it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
from typing import Any

from ._border import InputError, WorkError


def program() -> str:
    """The path of the program: the one that was installed with this package, else the one on PATH."""
    try:
        files = importlib.metadata.files("fairway") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-2:] == ("bin", "fairway"):
            return os.path.realpath(file.locate())
    found = shutil.which("fairway")
    if found is None:
        raise WorkError("the program fairway is not there: neither installed with this package nor on PATH")
    return found


def call(*arguments: str | os.PathLike[str]) -> Any:
    """Runs a command with --json and returns its result; its error becomes an exception. Progress is not shown."""
    command = [program(), *(os.fspath(argument) for argument in arguments), "--json", "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = {}
    if done.returncode == 0:
        return result
    sentence = result.get("error") or done.stderr.decode(errors="replace").strip() or f"{command}: status {done.returncode}"
    raise (InputError if done.returncode == 2 else WorkError)(sentence)


def score(source: str | os.PathLike[str], **flags: Any) -> dict[str, Any]:
    """Bits per byte of a run folder, an artifact or a weight file: the object that `fairway score SOURCE --json` prints.

    flags are the command's (`fairway help score`): data="shards", mode="sliding", stride=64, tokens=100_000, documents=True,
    all_targets=True, text="essay.txt", threads=2. The program runs as a process of its own.
    """
    arguments: list[str] = []
    for key, value in flags.items():
        name = "--" + key.replace("_", "-")
        if value is True:
            arguments.append(name)
        elif value is not None and value is not False:
            arguments.append(f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    result: dict[str, Any] = call("score", source, *arguments)
    return result
