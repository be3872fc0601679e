"""Reads the artifacts and runs of the program `fairway`, which this package puts on PATH.

    artifact = fairway.load("runs/mine/model.fwy")
    artifact.tensors            # names, shapes, roles, bits
    artifact["bank.up[0]"]      # the weights as the model computes with them, float32
    artifact.logits([1, 5, 9])  # what the model says after each token
    artifact.generate("The first", seed=1)
    fairway.score("runs/mine", mode="sliding")
    fairway.read_run("runs/mine")

What the program refuses is an InputError here (a ValueError) with the program's sentence; work that fails is a WorkError (a RuntimeError).
"""

from ._border import InputError, WorkError
from ._border import version as _version
from .artifact import Artifact, Integers, TensorInfo, load
from .program import program, score
from .runs import read_run, read_runs

__version__ = _version()
__all__ = [
    "Artifact",
    "InputError",
    "Integers",
    "TensorInfo",
    "WorkError",
    "load",
    "program",
    "read_run",
    "read_runs",
    "score",
]
