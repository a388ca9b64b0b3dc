"""The PTX of the printed kernels to the bit of the executors on the host: every rule, dtype and option.

NVRTC compiles the text of `Program.cuda`, and the interpreter of `ptx` runs what it emitted on copies of all arrays of a step.
"""

import pytest
import test_bits
from ptx_library import ptx_library
from steps import twin
from test_bits import CONFIGURATIONS

from optimizers import OPTIMIZERS
from oxigrad.cuda.compiler import Compiler

# Around the elements of a thread, of codes with one scale, of a tile, and of a chunk.
LENGTHS = (0, 1, 17, 257, 1025, 4097)
# A sample of the rules for the configurations beyond those of one dtype: the tables of the host test all of them.


@pytest.fixture(autouse=True)
def _few_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_bits, "LENGTHS", LENGTHS)


@pytest.mark.parametrize("rule", OPTIMIZERS)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_step_has_the_bits_of_the_host(nvrtc: Compiler, name: str, rule: str) -> None:
    configuration = CONFIGURATIONS[name]
    opt = configuration.around(OPTIMIZERS[rule]())
    with twin(opt, ptx_library, **configuration.options) as found:
        configuration.run(opt)
    assert found.checked >= 2 * len(LENGTHS) * configuration.steps
