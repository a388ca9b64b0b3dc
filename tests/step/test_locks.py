"""Signals, re-entry, threads and forks during a step: other calls wait, save, or raise; none deadlocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim

UNDER_WAY = "the optimizer is taking a step already, in this thread"


def run(source: str, *, arguments: tuple[str, ...] = ()) -> str:
    """Output of a program that runs in a process of its own, so that a crash or a hang is one failure."""
    command = [sys.executable, "-c", "if True:\n" + source, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-2000:])
    return ran.stdout


# --- re-entry ----------------------------------------------------------------------------------------------------------


class Reentrant:
    """Calls a function once, and keeps what it raises."""

    def __init__(self) -> None:
        self.use: Any = None
        self.raised: Exception | None = None

    def __call__(self) -> None:
        use, self.use = self.use, None
        if use:
            try:
                use()
            except ox.StateError as error:
                self.raised = error


def of_kind(kind: str, hook: Reentrant) -> tuple[Any, Any, Any]:
    """An optimizer, a model and gradients of which something calls ``hook`` in a step."""
    model, grads = {"w": np.ones(3)}, {"w": np.ones(3)}
    if kind == "schedule":
        return optim.SGD(lambda step: hook() or 0.1), model, grads
    if kind == "rule":

        def rule(xp: Any, p: Any, g: Any, m: Any, *, learning_rate: float = 0.1) -> Any:
            hook()
            return p - learning_rate * g, m + g

        return optim.define(rule, elementwise=False)(), model, grads
    if kind == "container":

        class Holder(dict[str, Any]):
            def __setitem__(self, key: Any, value: Any) -> None:
                hook()
                super().__setitem__(key, value)

        frozen = np.ones(3)
        frozen.setflags(write=False)
        return optim.SGD(0.1), Holder(w=frozen), {"w": np.ones(3)}

    class Exporter:
        """An array that only exports itself."""

        def __init__(self, array: np.ndarray) -> None:
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __array_namespace__(self, api_version: str | None = None) -> Any:
            return np

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

        def __dlpack__(self, **named: Any) -> Any:
            hook()
            return self.array.__dlpack__(**named)

    return optim.SGD(0.1), model, {"w": Exporter(np.ones(3))}


USES = {
    "update": lambda opt, model, grads: opt.update(model, grads),
    "load": lambda opt, model, grads: opt.load_state_dict(optim.SGD(0.1).state_dict()),
    "build": lambda opt, model, grads: opt.build(model),
    "swap_in": lambda opt, model, grads: opt.swap_in(model),
}


@pytest.mark.parametrize("kind", ["schedule", "rule", "container", "__dlpack__"])
@pytest.mark.parametrize("use", USES)
def test_a_callback_of_a_step_cannot_take_a_step(kind: str, use: str) -> None:
    hook = Reentrant()
    opt, model, grads = of_kind(kind, hook)
    hook.use = lambda: USES[use](opt, model, grads)
    model = opt.update(model, grads)
    assert hook.raised is not None and UNDER_WAY in str(hook.raised)
    assert opt.step == 1
    np.testing.assert_allclose(np.asarray(model["w"]), 0.9)
    opt.update(model, grads)
    assert opt.step == 2


@pytest.mark.parametrize("kind", ["schedule", "rule", "__dlpack__"])
def test_a_callback_of_a_step_may_save(kind: str, tmp_path: Path) -> None:
    hook, found = Reentrant(), []
    opt, model, grads = of_kind(kind, hook)
    opt.update(model, grads)
    hook.use = lambda: (found.append(opt.state_dict()), opt.save(tmp_path / "state"))
    opt.update(model, grads)
    assert hook.raised is None and opt.step == 2
    assert found[0]["step"] == ox.state.read(tmp_path / "state")["step"] == 1


def test_a_container_that_saves_while_it_is_written_is_told_why_not() -> None:
    hook = Reentrant()
    opt, model, grads = of_kind("container", hook)
    hook.use = opt.state_dict
    opt.update(model, grads)
    assert "another step of this optimizer is under way" in str(hook.raised)
    assert opt.state_dict()["step"] == 1


def test_a_loss_that_updates_in_a_search_is_refused() -> None:
    opt, model = optim.LBFGS(), {"w": np.ones(3)}

    def loss(model: Any) -> Any:
        opt.minimize(loss, model)

    with pytest.raises(ox.StateError, match=UNDER_WAY):
        opt.minimize(loss, model)
    opt.minimize(lambda model: ox.xp.sum(model["w"] ** 2), model)
    assert opt.step == 1


def test_an_error_or_an_interrupt_gives_the_lock_back() -> None:
    hook = Reentrant()
    opt, model, grads = of_kind("schedule", hook)

    def interrupt() -> None:
        raise KeyboardInterrupt

    hook.use = interrupt
    with pytest.raises(KeyboardInterrupt):
        opt.update(model, grads)
    thread = threading.Thread(target=opt.update, args=(model, grads), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive() and opt.step == 1


# --- threads -----------------------------------------------------------------------------------------------------------


def test_threads_wait_for_each_other() -> None:
    opt, model, grads = optim.SGD(1.0), {"w": np.zeros(1 << 16)}, {"w": np.ones(1 << 16)}
    finished: list[bool] = []

    def work() -> None:
        for k in range(25):
            opt.update(model, grads)
            if k % 5 == 0:
                assert 0 < opt.state_dict()["step"] <= 100
        finished.append(True)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(finished) == 4 and opt.step == 100
    np.testing.assert_array_equal(model["w"], -100.0)


# --- signals -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that send signals")
@pytest.mark.slow
def test_a_signal_handler_that_saves_gets_the_state_before_or_after_a_step(tmp_path: Path) -> None:
    source = """
        import signal, sys, time, numpy as np, oxigrad as ox
        from oxigrad import optim
        opt = optim.chain(optim.SGD(1.0), optim.EMA(0.5), loss_scale=ox.optim.LossScale(1.0, interval=10**9))
        size = 1 << 17
        model, grads = {f"w{k}": np.zeros(size) for k in range(3)}, {f"w{k}": np.ones(size) for k in range(3)}
        seen, refused = [], []
        def handler(*_):
            try:
                state = opt.state_dict()
                step = state["step"]
                assert state["remembered"]["loss_scale"]["good"] == step, "half a step"
                for own in state["slots"].values():
                    for name, slot in own.items():
                        slot = np.asarray(slot)
                        assert (slot == slot.flat[0]).all(), "torn"
                        if name == "average":
                            assert slot.flat[0] == 0.0 or step, (name, step)
                names = next(iter(state["slots"].values()), ())
                firsts = {name: {float(np.asarray(own[name]).flat[0]) for own in state["slots"].values()} for name in names}
                assert all(len(values) == 1 for values in firsts.values()), "some parameters' slots of another step"
                opt.save(sys.argv[1])
                seen.append(step)
            except ox.StateError:
                refused.append(1)
            signal.setitimer(signal.ITIMER_REAL, 0.013)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        end = time.time() + 3
        try:
            while time.time() < end:
                opt.update(model, grads)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert len(seen) > 5 and len(refused) <= len(seen) // 10, (len(seen), len(refused))
        print("done")
    """
    assert run(source, arguments=(str(tmp_path / "state"),)) == "done\n"


# --- forks -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.slow
def test_a_child_forked_during_a_step_steps_or_raises() -> None:
    source = """
        import os, sys, threading, time, warnings, numpy as np, oxigrad as ox
        from oxigrad import optim
        warnings.simplefilter("ignore")
        ox.set_num_threads(2)
        opt, model, grads = optim.Adam(0.1), {"w": np.zeros(1 << 20)}, {"w": np.ones(1 << 20)}
        opt.update(model, grads)
        stop = False
        def work():
            while not stop:
                opt.update(model, grads)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        outcomes = []
        for _ in range(20):
            time.sleep(0.011)
            child = os.fork()
            if not child:
                try:
                    before = opt.step
                    opt.update(model, grads)
                    other = optim.SGD(0.1)
                    other.update(model, grads)
                    state = opt.state_dict()
                    os._exit(0 if state["step"] == before + 1 else 3)
                except ox.StateError as error:
                    if "forked while another thread" not in str(error):
                        os._exit(4)
                    state = optim.Adam(0.1).state_dict()
                    opt.load_state_dict({**state, "optimizer": opt.name}, strict=False)
                    opt.update(model, grads)
                    os._exit(1)
                except BaseException:
                    sys.excepthook(*sys.exc_info())
                    os._exit(2)
            end = time.time() + 20
            while (status := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.time() > end:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    outcomes.append("hung")
                    break
                time.sleep(0.002)
            else:
                outcomes.append(os.waitstatus_to_exitcode(status[1]))
        stop = True
        thread.join(20)
        assert set(outcomes) <= {0, 1}, outcomes
        print("done")
    """
    assert run(source) == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_step_that_forks_goes_on_in_both_processes() -> None:
    source = """
        import os, numpy as np
        from oxigrad import optim
        child = None
        def rate(step):
            global child
            child = os.fork() if child is None else child
            return 0.1
        opt, model = optim.SGD(rate), {"w": np.ones(3)}
        for _ in range(2):
            opt.update(model, {"w": np.ones(3)})
        assert opt.step == 2
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            print("done")
        else:
            os._exit(0)
    """
    assert run(source) == "done\n"


def test_a_rule_s_result_is_described_without_a_lock() -> None:
    """The metaclass of what a rule returns computes with a symbol of the rule while the error is written."""
    source = """
        import numpy as np
        from oxigrad import optim
        symbols = []
        class Meta(type):
            def __str__(cls):
                return repr(symbols[0] + 1)
            __repr__ = __str__
        class Odd(metaclass=Meta): ...
        def rule(xp, p, g, *, learning_rate=0.1):
            symbols.append(p)
            return Odd()
        try:
            optim.define(rule)().update({"w": np.ones(3)}, {"w": np.ones(3)})
        except TypeError as error:
            print("done")
    """
    assert run(source) == "done\n"
