"""Artifacts in NumPy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _border
from ._border import InputError


class TensorInfo(NamedTuple):
    """What an artifact stores of one tensor."""

    name: str
    shape: tuple[int, ...]
    role: str  # whose stream of the file: token, query, key, value, output, up, down, other
    coding: str  # integer_rows, half or single
    bits: int  # of the integers; 16 and 32 of the other codings
    correction_rank: int  # of a low-rank correction; 0: none
    rows: int  # the same elements as the matrix that was quantized
    cols: int


class Integers(NamedTuple):
    """A quantized matrix: values * row_steps[:, None] * column_steps is the weight, but for a correction where there is one."""

    values: NDArray[np.int8]
    row_steps: NDArray[np.float32]
    column_steps: NDArray[np.float32]


class Artifact(Mapping[str, NDArray[np.float32]]):
    """An open artifact. As a mapping: tensors by name, each a new float32 array of the weights that the model computes with.

    It may be used by several threads: computing takes turns, reading does not. It does not survive os.fork(); a child process
    loads its own.
    """

    def __init__(self, opened: _border.Artifact) -> None:
        self._opened = opened
        self._tensors = {told[0]: TensorInfo(*told) for told in opened.tensors()}
        self._indices = {name: index for index, name in enumerate(self._tensors)}
        self._info: dict[str, Any] = json.loads(opened.describe())

    @property
    def tensors(self) -> dict[str, TensorInfo]:
        """What is stored of each tensor, by name, in the order of the file."""
        return dict(self._tensors)

    @property
    def info(self) -> dict[str, Any]:
        """What the file says of itself: bytes, weights, train_length, tokenizer and recipe_hash (hexadecimal), and more."""
        return {key: value for key, value in self._info.items() if key != "model"}

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe's keys that an artifact keeps, those of the table [model]."""
        return {"model": json.loads(json.dumps(self._info["model"]))}

    @property
    def vocab(self) -> int:
        """Tokens that the model knows."""
        return self._opened.vocab()

    def _index(self, name: str) -> int:
        try:
            return self._indices[name]
        except KeyError:
            raise KeyError(f"no tensor {name!r}; the first is {next(iter(self._indices), None)!r}") from None

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        index = self._index(name)
        out = np.empty(self._tensors[name].shape, np.float32)
        self._opened.floats(index, out.reshape(-1))
        return out

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __repr__(self) -> str:
        return f"<fairway.Artifact: {len(self)} tensors, {self._info['weights']:,} weights, {self._info['bytes']:,} bytes>"

    def integers(self, name: str) -> Integers:
        """The integers of a quantized tensor and their steps. InputError for a tensor of another coding."""
        index, told = self._index(name), self._tensors[name]
        if told.coding != "integer_rows":
            raise InputError(f"{name}: is stored as {told.coding}, expected a tensor of integers")
        out = Integers(
            np.empty((told.rows, told.cols), np.int8), np.empty(told.rows, np.float32), np.empty(told.cols, np.float32)
        )
        self._opened.integers(index, *out)
        return out

    def logits(self, tokens: ArrayLike) -> NDArray[np.float32]:
        """(len(tokens), vocab): row t is what the model says after tokens 0 to t. A document begins with token 1."""
        given = _tokens(tokens)
        out = np.empty((given.size, self.vocab), np.float32)
        self._opened.logits(given, out)
        return out

    def use_tokenizer(self, path: str | os.PathLike[str]) -> None:
        """Takes this SentencePiece model for text, which an artifact without a tokenizer of its own needs."""
        self._opened.set_tokenizer(os.fsencode(path))

    def encode(self, text: str) -> NDArray[np.int32]:
        """The text's tokens, without the 1 that begins a document."""
        return np.array(self._opened.encode(_bytes(text)), np.int32)

    def generate(
        self, prompt: str = "", *, on_text: Callable[[str], Any] | None = None, **sampling: float
    ) -> str:
        """Continues the prompt and returns what was added: the text of `fairway generate` with the same flags.

        sampling: tokens (128), temperature (0.8), top_k (0), top_p (1), seed (1) and context (0: the training length).
        on_text gets the text as it is made and may return False to end it.
        """
        return self._opened.generate(_bytes(prompt), _sampling(sampling), on_text)

    def continue_tokens(self, tokens: ArrayLike, /, **sampling: float) -> NDArray[np.int32]:
        """The tokens that follow exactly these, without a tokenizer; sampling as for generate()."""
        return np.array(self._opened.go_on(_tokens(tokens), _sampling(sampling)), np.int32)


def load(source: str | os.PathLike[str] | bytes, *, threads: int = 0) -> Artifact:
    """Opens an artifact from its file or its bytes. threads: of its computations; 0: as many as the machine has."""
    if isinstance(source, bytes):
        return Artifact(_border.Artifact.open_bytes(source, threads))
    return Artifact(_border.Artifact.open(os.fsencode(source), threads))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _tokens(tokens: ArrayLike) -> NDArray[np.int32]:
    given = np.asarray(tokens)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InputError(f"tokens: of shape {given.shape} and type {given.dtype}, expected some integers in one row")
    limits = np.iinfo(np.int32)
    if given.min() < limits.min or given.max() > limits.max:
        raise InputError(f"tokens: from {given.min()} to {given.max()}, expected numbers of 32 bits")
    return np.ascontiguousarray(given, np.int32)


def _sampling(wanted: Mapping[str, float]) -> _border.Sampling:
    out = _border.Sampling()
    for key, value in wanted.items():
        if key.startswith("_") or not hasattr(out, key):
            raise TypeError(f"unknown argument {key!r}; expected tokens, temperature, top_k, top_p, seed or context")
        setattr(out, key, value)
    return out
