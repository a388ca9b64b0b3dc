"""The recipes of CONTRIBUTING.md, each followed in a copy of the package: what is added is there, in every place that is derived."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import oxigrad

ROOT = Path(__file__).parent.parent
PACKAGE = Path(oxigrad.__file__).parent

pytestmark = pytest.mark.skipif(not (ROOT / "tools").exists(), reason="the tools are not here")


class Copy:
    """A copy of the package in another folder, whose files can be changed. The compiled module is a link."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(PACKAGE, folder / "oxigrad", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        for compiled in PACKAGE.glob("*.so"):
            (folder / "oxigrad" / compiled.name).symlink_to(compiled.resolve())

    def name(self, file: str, name: str) -> None:
        """Adds a name to ``__all__`` of a file."""
        path = self.folder / "oxigrad" / file
        before, found, after = path.read_text().partition("__all__ = [")
        assert found, f"{file} has no __all__"
        path.write_text(f'{before}{found}"{name}", {after}')

    def append(self, file: str, text: str) -> None:
        """Appends code to a file, which may be new."""
        with (self.folder / "oxigrad" / file).open("a") as opened:
            opened.write("\n\n" + textwrap.dedent(text))

    def run(self, program: str) -> str:
        """The output of a program that imports the copy, the tools and the tables of tests."""
        tests = ROOT / "tests"
        places = [self.folder, ROOT / "tools", ROOT / "examples", tests, tests / "tables", tests / "emulators"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places)), "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


# --- an optimizer --------------------------------------------------------------------------------------------------------

RULE = '''
    def halved_sgd(xp, p, g, m=Slot.zeros(when="beta1"), *, learning_rate: NonNegative = 0.01, beta1: NonNegative = 0.5):
        """Halved descent (Nobody 2024): an optimizer for tests."""
        if m is not None:
            g = m = beta1 * m + g
        return p - 0.5 * learning_rate * g, m
    '''
ROW = """
    HalvedSGD = entry(
        rules.halved_sgd,
        "HalvedSGD",
        presets={"optax": {"beta1": 0.25}},
        torch=Keys(slots={"m": "momentum_buffer"}, hyperparameters={"beta1": "momentum"}),
        optax={"halved": "learning_rate b1"},
        variants={"halved": {}, "halved-plain": {"beta1": 0.0}},
        valleys=(0.01, 0.02),
    )
    """


@pytest.fixture
def with_optimizer(copy: Copy) -> Copy:
    copy.name("rules/sgd.py", "halved_sgd")
    copy.append("rules/sgd.py", RULE)
    copy.append("optim/table/descent.py", ROW)
    return copy


@pytest.mark.slow
def test_an_optimizer_is_a_rule_and_a_row(with_optimizer: Copy) -> None:
    program = """
        import pickle
        import numpy as np
        import gallery, optimizer_tables, optimizers, test_public
        from oxigrad import optim, rules
        from oxigrad.testing import check_rule

        check_rule(rules.halved_sgd)
        opt = optim.HalvedSGD(1.0)
        model = {"w": np.ones(2)}
        for _ in range(2):
            opt.update(model, {"w": np.ones(2)})
        assert model["w"].tolist() == [-0.25, -0.25], model
        assert "HalvedSGD" in dir(optim) and "HalvedSGD" in test_public.OPTIMIZERS["oxigrad.torch"]
        assert optim.HalvedSGD.__module__ == "oxigrad.optim"
        assert pickle.loads(pickle.dumps(optim.HalvedSGD)) is optim.HalvedSGD
        assert optim.from_config(opt.get_config()).get_config() == opt.get_config()
        assert optim.HalvedSGD(compat="optax").beta1 == 0.25
        assert optimizers.OPTIMIZERS["halved-plain"]().hyperparameters == {"learning_rate": 0.1, "beta1": 0.0}
        assert gallery.RATES["HalvedSGD"] == (0.01, 0.02)
        print(next(line for line in optimizer_tables.rules().splitlines() if line.startswith("| HalvedSGD")))
        """
    expected = "| HalvedSGD | Halved descent (Nobody 2024): an optimizer for tests. | (m: `beta1`) | 4 | (optax) |  |\n"
    pytest.importorskip("matplotlib")
    assert with_optimizer.run(program) == expected


def test_an_optimizer_is_one_of_torch(with_optimizer: Copy, library: Any) -> None:
    library("torch")
    program = """
        import inspect
        import torch, optimizer_tables
        import oxigrad.torch

        weight = torch.nn.Parameter(torch.ones(2))
        opt = oxigrad.torch.HalvedSGD([weight], lr=1.0)
        for _ in range(2):
            weight.grad = torch.ones(2)
            opt.step()
        assert weight.tolist() == [-0.25, -0.25]
        assert opt.state[weight]["momentum_buffer"].tolist() == [1.5, 1.5]
        assert opt.param_groups[0]["momentum"] == 0.5
        print(next(line for line in optimizer_tables.classes().splitlines() if line.startswith("| HalvedSGD")))
        """
    assert with_optimizer.run(program) == "| HalvedSGD |  | `lr=0.01, momentum=0.5` |\n"


def test_an_optimizer_is_one_of_optax(with_optimizer: Copy, library: Any) -> None:
    library("jax")
    library("optax")
    program = """
        import inspect
        import jax.numpy as jnp
        import oxigrad.optax

        tx = oxigrad.optax.halved(1.0, b1=0.5)
        params = {"w": jnp.ones(2)}
        state = tx.init(params)
        for _ in range(2):
            params, state = tx.apply({"w": jnp.ones(2)}, state, params)
        assert params["w"].tolist() == [-0.25, -0.25]
        print(inspect.signature(oxigrad.optax.halved).replace(return_annotation=inspect.Signature.empty))
        """
    assert with_optimizer.run(program) == "(learning_rate, b1=0.25)\n"


# --- what is smaller -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_transform_is_a_rule_and_a_row(copy: Copy) -> None:
    rule = '''
        def halve(xp, p, g, *, share: Share = 0.5):
            """The share of the gradient."""
            return share * g
        '''
    copy.append("rules/gradient_transforms.py", rule)
    copy.append("optim/table/transforms.py", 'Halve = _transform(gradient_transforms.halve, "gradient")')
    program = """
        import numpy as np
        from oxigrad import optim

        opt = optim.chain(optim.Halve(0.25), optim.SGD(1.0))
        print(opt.update({"w": np.zeros(1)}, {"w": np.ones(1)}), "Halve" in dir(optim))
        print(optim.from_config(opt.get_config()).parts[0])
        """
    assert copy.run(program) == "{'w': array([-0.25])} True\nHalve(share=0.25)\n"


def test_a_schedule_is_a_class(copy: Copy) -> None:
    schedule = '''
        @dataclasses.dataclass(frozen=True)
        class halving(Schedule):
            """The value ``initial``, halved in each step."""

            initial: float

            def at(self, step: Array) -> Array:
                return self.initial * 0.5**step
        '''
    copy.name("schedules/curves.py", "halving")
    copy.append("schedules/curves.py", schedule)
    program = """
        from oxigrad import optim, schedules

        found = schedules.from_config(schedules.halving(8.0).get_config())
        print("halving" in dir(schedules), found, found(3), schedules.warmup(found, 2)(2))
        """
    assert copy.run(program) == "True halving(initial=8.0) 1.0 8.0\n"


def test_a_function_is_composed_of_others(copy: Copy) -> None:
    function = '''
        def softsign(x: Array) -> Array:
            """``x / (1 + abs(x))``."""
            return x / (1 + absolute(x))
        '''
    copy.name("xp/_scipy/special/composed.py", "softsign")
    copy.append(
        "xp/_scipy/special/composed.py",
        "from oxigrad.ops.core.primitives import abs as absolute\n" + textwrap.dedent(function),
    )
    program = """
        import oxigrad as ox
        from oxigrad import xp

        print("softsign" in dir(xp.special), xp.special.softsign(-3.0), ox.grad(xp.special.softsign)(1.0))
        ox.testing.check_grads(xp.special.softsign, (0.7,), order=2)
        """
    assert copy.run(program) == "True -0.75 0.25\n"


def test_an_adapter_is_a_file_of_the_name_of_its_library(copy: Copy) -> None:
    """`complete` returns a namespace with the standard's names, for a library that has other ones."""
    adapter = '''
        """Arrays of the library ``tiny``, with a function that it lacks."""

        import types
        from typing import Any

        from oxigrad.ops.backends.generic import Adapter


        class Tiny(Adapter):
            """The adapter of the library ``tiny``."""


        def complete(module: Any) -> Any:
            """The namespace, with a name more."""
            made = types.ModuleType(module.__name__)
            vars(made).update(vars(module), completed=True)
            return made


        ADAPTER = Tiny
        '''
    copy.append("ops/backends/tiny.py", adapter)
    program = """
        import tiny
        from oxigrad.ops.backends import dispatch, namespace

        x = tiny.asarray([1.0, 2.0])
        print(type(dispatch.adapter_of(x)).__name__, namespace(x).completed)
        """
    assert copy.run(program) == "Tiny True\n"


# --- an engine -----------------------------------------------------------------------------------------------------------

ENGINE = '''
    """The engine of queues: workers that are threads of this process, for tests."""

    import threading
    from concurrent.futures import ThreadPoolExecutor

    from oxigrad.distributed.communicator import Communicator, Place, serving
    from oxigrad.distributed.engines.mailbox import Mailbox


    class Job:
        def __init__(self, size):
            self.size, self.barrier, self.shared = size, threading.Barrier(size), {}
            self.mail = [Mailbox(b"a job of queues.", 0, size) for _ in range(size)]


    class QueueCommunicator(Communicator):
        def __init__(self, job, rank, timeout):
            super().__init__(Place(rank, job.size, 0), b"a job of queues.", timeout)
            self._of = job

        def _all_gather_v(self, buf, seconds):
            self._of.shared[self.rank] = buf.copy()
            self._of.barrier.wait(seconds)
            found = [self._of.shared[rank] for rank in range(self.size)]
            self._of.barrier.wait(seconds)
            return found

        def _post(self, dest, message):
            self._of.mail[dest].put(message, self.rank)

        def _poll(self, tag, source, wait):
            while (message := self._of.mail[self.rank].take(tag, source)) is None and not wait.is_over():
                wait.pause()
            return message

        def alive(self):
            return frozenset(range(self.size))

        def leave(self):
            pass


    def run(worker, workers=4, *, timeout=60.0):
        job = Job(workers)

        def entered(rank):
            communicator = QueueCommunicator(job, rank, timeout)
            with serving(communicator):
                return worker(communicator)

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(entered, range(workers)))
    '''


@pytest.mark.slow
def test_an_engine_is_a_module_with_a_communicator(copy: Copy) -> None:
    """Its workers train by the wrappers with the bits of the engine of threads, by operations on all workers and by messages."""
    copy.append("distributed/engines/queues.py", ENGINE)
    path = copy.folder / "oxigrad" / "distributed" / "__init__.py"
    before, found, after = path.read_text().partition('ENGINES = ("threads", ')
    assert found
    path.write_text(f'{before}{found}"queues", {after}')
    program = """
        import numpy as np
        from oxigrad import distributed, optim

        def worker(communicator, wrapper):
            model = {"w": np.zeros(3)}
            with wrapper(optim.Adam(0.1)) as opt:
                model = opt.start(model)
                for step in range(4):
                    model = opt.update(model, {"w": np.array([1.0, -2.0, 0.5]) * (communicator.rank + step)})
            return model["w"].tobytes()

        for wrapper in (distributed.LargeBatch, lambda opt: distributed.ModelAverage(opt, interval=2)):
            results = [
                distributed.run(lambda communicator: worker(communicator, wrapper), engine, 3)
                for engine in ("threads", "queues")
            ]
            assert results[0] == results[1] and len({*results[0]}) == 1, results
        try:
            distributed.run(print, "none")
        except ValueError as error:
            print(error)
        """
    assert copy.run(program) == "engine is 'none': expected one of threads, queues, mpi, ray, torch\n"
