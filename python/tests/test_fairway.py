"""The installed package: artifacts, text, scores and runs, and its errors. scripts/check-wheel runs it in a fresh environment."""

import contextlib
import functools
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import fairway
import numpy as np

SOURCE = pathlib.Path(os.environ["FAIRWAY_SOURCE"])
PANDAS = os.environ["FAIRWAY_WITH"] == "pandas"


def text(seed, sentences):
    draw = random.Random(seed)
    nouns, verbs = "wind sea fairway green ball hole bird tree".split(), "finds leaves crosses follows keeps".split()
    return "".join(f"The {draw.choice(nouns)} {draw.choice(verbs)} the {draw.choice(nouns)}.\n" for _ in range(sentences))


@functools.cache
def made():
    """A small run with everything beside it, made once by the program of the wheel."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="fairway-"))
    unittest.addModuleCleanup(shutil.rmtree, root)
    (root / "train.txt").write_text(text(1, 6000))
    (root / "val.txt").write_text(text(2, 600))

    def run(*words):
        subprocess.run([fairway.program(), *words, "--quiet", "--threads", "1"], cwd=root, check=True, stdout=subprocess.DEVNULL)

    run("data", "train-tokenizer", "train.txt", "--vocab", "300", "--out", "tokenizer.model")
    run("data", "tokenize", "train.txt", "--val", "val.txt", "--tokenizer", "tokenizer.model", "--out", "shards")
    shutil.copy(root / "tokenizer.model", root / "shards")
    run("run", "smoke", "--data", "shards", "--out", "run", "--steps", "10", "--as-published", "--set", "model.vocab=300")
    shutil.copy(root / "run" / "model.fwy", root / "model.fwy")
    return root


def opened(threads=1):
    artifact = fairway.load(made() / "model.fwy", threads=threads)
    artifact.use_tokenizer(made() / "tokenizer.model")
    return artifact


def columns(table):
    """A table of either kind as a dict of arrays."""
    if PANDAS:
        import pandas

        assert isinstance(table, pandas.DataFrame)
    return {name: np.asarray(table[name]) for name in table}


class Artifacts(unittest.TestCase):
    def test_tensors_have_their_shapes(self):
        artifact = opened()
        self.assertEqual(list(artifact), list(artifact.tensors))
        self.assertEqual(artifact["embed.token"].shape, (300, artifact.recipe["model"]["dim"]))
        self.assertEqual(sum(artifact[name].size for name in artifact), artifact.info["weights"])
        for name, told in artifact.tensors.items():
            self.assertEqual(artifact[name].shape, told.shape, name)
            self.assertEqual(artifact[name].dtype, np.float32)
            self.assertTrue(np.isfinite(artifact[name]).all(), name)
        self.assertEqual(artifact.info["bytes"], (made() / "model.fwy").stat().st_size)

    def test_integers_times_steps_are_the_weights(self):
        artifact = opened()
        quantized = [name for name, told in artifact.tensors.items() if told.coding == "integer_rows"]
        plain = [name for name in quantized if artifact.tensors[name].correction_rank == 0]
        self.assertGreater(len(plain), 3)
        for name in plain:
            q, rows, cols = artifact.integers(name)
            np.testing.assert_allclose(q * rows[:, None] * cols, artifact[name].reshape(q.shape), rtol=1e-6)
            self.assertLess(np.abs(q).max(), 2 ** (artifact.tensors[name].bits - 1))

    def test_logits_score_as_the_program_scores(self):
        artifact = opened()
        tokens = np.concatenate([[1], artifact.encode(text(2, 5))])
        logits = artifact.logits(tokens)
        self.assertEqual(logits.shape, (tokens.size, 300))
        np.testing.assert_array_equal(artifact.logits(tokens[:3]), logits[:3])
        wide = logits.astype(np.float64)
        chances = wide - np.log(np.exp(wide - wide.max(1, keepdims=True)).sum(1, keepdims=True)) - wide.max(1, keepdims=True)
        nats = -chances[np.arange(tokens.size - 1), tokens[1:]].mean()
        (made() / "few.txt").write_text(text(2, 5))
        told = fairway.score(made() / "model.fwy", text=made() / "few.txt", tokenizer=made() / "tokenizer.model", context=256, threads=1)
        self.assertEqual(told["tokens"], tokens.size - 1)
        self.assertAlmostEqual(nats, told["val_loss"], places=4)

    def test_text_is_the_programs(self):
        told = subprocess.run(
            [fairway.program(), "generate", "model.fwy", "--tokenizer", "tokenizer.model", "--prompt", "The wind"]
            + ["--tokens", "30", "--seed", "5", "--json", "--threads", "2"],
            cwd=made(), check=True, capture_output=True,
        )  # fmt: skip
        pieces = []
        artifact = opened()
        written = artifact.generate("The wind", tokens=30, seed=5, on_text=pieces.append)
        self.assertEqual(written, json.loads(told.stdout)["text"])
        self.assertEqual("".join(pieces), written)
        self.assertGreater(len(written), 10)
        self.assertNotEqual(artifact.generate("The wind", tokens=30, seed=6), written)
        self.assertEqual(len(artifact.continue_tokens([1, 5], tokens=7, temperature=0)), 7)

    def test_text_ends_when_it_is_told_to(self):
        pieces = []
        opened().generate("The", on_text=lambda piece: bool(pieces.append(piece)))
        self.assertEqual(len(pieces), 1)

        def fail(piece):
            raise LookupError(piece)

        with self.assertRaises(LookupError):
            opened().generate("The", on_text=fail)

    def test_interrupts_end_a_text(self):
        with self.assertRaises(KeyboardInterrupt):
            opened().generate("The", tokens=1 << 20, on_text=lambda piece: signal.raise_signal(signal.SIGINT))

    def test_threads_share_an_artifact(self):
        artifact, results = opened(threads=2), []
        write = lambda: results.append(artifact.generate("The", tokens=10, seed=3))
        callers = [threading.Thread(target=write) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertEqual(results, [opened().generate("The", tokens=10, seed=3)] * 4)


class Errors(unittest.TestCase):
    def test_damaged_files_are_input_errors(self):
        whole = (made() / "model.fwy").read_bytes()
        for damaged in (b"", b"FWAY", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
            with self.assertRaisesRegex(fairway.InputError, "bytes in memory: "):
                fairway.load(damaged)
        with self.assertRaisesRegex(ValueError, "no-such.fwy: "):
            fairway.load("no-such.fwy")
        with self.assertRaisesRegex(fairway.InputError, "no-such-[?].fwy: "):
            fairway.load("no-such-\udcff.fwy")
        with self.assertRaisesRegex(fairway.InputError, "zero byte"):
            fairway.load("a\0b")

    def test_wrong_arguments_are_errors(self):
        artifact = opened()
        with self.assertRaisesRegex(fairway.InputError, "token 1 is 300, expected 0 to 299"):
            artifact.logits([1, 300])
        for tokens in ([], [[1]], [1.5], [2**40], ["a"]):
            with self.assertRaisesRegex(fairway.InputError, "tokens: "):
                artifact.logits(tokens)
        with self.assertRaisesRegex(KeyError, "no tensor 'bank.nothing'"):
            artifact["bank.nothing"]
        with self.assertRaisesRegex(fairway.InputError, "temperature: nan, expected 0 to 100"):
            artifact.generate("The", temperature=float("nan"))
        with self.assertRaisesRegex(TypeError, "temprature"):
            artifact.generate("The", temprature=1)
        with self.assertRaisesRegex(fairway.InputError, "carries no tokenizer"):
            fairway.load(made() / "model.fwy").generate("The")
        with self.assertRaisesRegex(fairway.InputError, "expected a tensor of integers"):
            artifact.integers(next(name for name, told in artifact.tensors.items() if told.coding != "integer_rows"))

    def test_errors_of_the_program_are_exceptions(self):
        with self.assertRaisesRegex(fairway.InputError, "/nothing: no such file"):
            fairway.score("/nothing")
        with self.assertRaises(fairway.InputError):
            fairway.read_run("/nothing")
        with self.assertRaises(fairway.InputError):
            fairway.read_runs([])


class Runs(unittest.TestCase):
    def test_a_run_is_a_table(self):
        steps = columns(fairway.read_run(made() / "run"))
        np.testing.assert_array_equal(steps["step"], np.arange(1, 11))
        self.assertEqual(steps["loss"].dtype, np.float64)
        self.assertLess(steps["loss"][-1], steps["loss"][0])
        self.assertTrue(np.isnan(steps["val_bpb"][0]))
        self.assertTrue(np.isfinite(steps["val_bpb"][-1]))

    def test_runs_are_a_table(self):
        runs = columns(fairway.read_runs([made() / "run"]))
        self.assertEqual(list(runs["run"]), ["run"])
        self.assertEqual(runs["artifact_bytes"][0], (made() / "model.fwy").stat().st_size)
        self.assertEqual(runs["legal"].dtype, np.bool_)
        self.assertTrue(runs["legal"][0])

    def test_scores_are_the_runs(self):
        told = fairway.score(made() / "run" / "model.fwy", data=made() / "shards", mode="sliding", threads=1)
        self.assertAlmostEqual(told["val_bpb"], json.loads((made() / "run" / "score.json").read_text())["val_bpb"], places=12)


class Package(unittest.TestCase):
    def test_the_program_is_on_the_path(self):
        found = shutil.which("fairway")
        self.assertEqual(os.path.realpath(found), fairway.program())
        self.assertEqual(pathlib.Path(found).parent, pathlib.Path(sys.executable).parent)
        told = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(told.strip(), f"fairway {fairway.__version__}")

    def test_it_needs_what_every_system_has(self):
        folder = pathlib.Path(fairway.__file__).parent
        self.assertTrue(folder.is_relative_to(sys.prefix))
        border = pathlib.Path(sys.modules["fairway._border"].__file__)
        for file in (border, pathlib.Path(fairway.program()), *folder.glob("lib/*.so*")):
            needed = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
            for name, place in re.findall(r"(\S+) => (.*?)(?: \(|$)", needed, re.M):
                ours = os.path.realpath(place).startswith(os.path.realpath(sys.prefix) + "/")
                everywhere = re.match(r"(libstdc\+\+|libm|libgcc_s|libc|libpthread|libdl)\.so", name)
                self.assertTrue(ours or everywhere, f"{file} takes {name} from {place}")

    def test_everything_is_told_of(self):
        for name in fairway.__all__:
            self.assertTrue(getattr(fairway, name).__doc__ or name.endswith("Error"), name)
        self.assertTrue((pathlib.Path(fairway.__file__).parent / "py.typed").exists())

    def test_the_examples_of_the_page_run(self):
        examples = re.findall(r"^```python\n(.*?)^```", (SOURCE / "docs" / "library.md").read_text(), re.M | re.S)
        self.assertGreater(len(examples), 0)
        before = os.getcwd()
        try:
            os.chdir(made())
            for example in examples:
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile(example, "docs/library.md", "exec"), {})
                self.assertGreater(len(printed.getvalue()), 10)
        finally:
            os.chdir(before)


if __name__ == "__main__":
    unittest.main()
