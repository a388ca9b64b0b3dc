"""Update rules: the formulas of optimizers for one parameter, written once over ``xp``.

A rule takes ``xp``, the parameter ``p``, its gradient ``g`` and its slots, and returns the new parameter and the new
slots. After ``*`` come ``step`` (counted from 1), ``noise``, ``total`` and ``loss``, which are supplied to rules that
name them. The hyperparameters follow, with their defaults. A hyperparameter that is True, False, None or a string is a
flag: the rule may branch on it. A numeric hyperparameter is a symbol: the rule may not branch on it.

The default of a slot declares it (see `oxigrad.rules.core.slots.Slot`). ``Slot.zeros()`` is the declaration of a slot
without a default. ``Slot.zeros(when="amsgrad")`` exists only if a hyperparameter is set. ``Slot.scalar(0.0)`` is one
number for each parameter. Others are ``Slot.copy()`` of the parameter, ``Slot.full(...)`` and ``Slot.computed(...)``.

Defaults are PyTorch's if PyTorch has the optimizer, else optax's; `oxigrad.optim.table` has other libraries' defaults.

Rules by family:

* `sgd`: SGD and its variants, and rules of the gradient's sign; `adagrad`: Adagrad, RMSprop and related rules.
* `adam`, `adam_variants`: Adam and its variants.
* `layerwise`: LARS, LAMB, Fromage and NovoGrad; `schedule_free`: schedule-free SGD and AdamW, and Prodigy.
* `factored` (Adafactor, SM3), `orthogonal` (Muon), `preconditioned` (Shampoo, SOAP), `low_rank` (GaLore): rules called
  on whole arrays.
* `parameter_free`: DoG, DoWG, D-Adaptation, COCOB and MoMo, which estimate the learning rate.
* `gradient_transforms`: clipping, weight decay, averages and other transforms for chains.

Representation of rules, in `core`:

* `rule`: a rule with the declarations of its signature, and its evaluation; `composition`: several rules composed into
  one.
* `slots`: declarations of slots; `ranges`: domains of hyperparameters.
* `moments`, `norms`, `arrays`, `eigenvectors`: functions that rules share.
"""

from oxigrad.rules.adagrad import *  # noqa: F403 - a rule is named in its file alone
from oxigrad.rules.adam import *  # noqa: F403
from oxigrad.rules.adam_variants import *  # noqa: F403
from oxigrad.rules.factored import *  # noqa: F403
from oxigrad.rules.layerwise import *  # noqa: F403
from oxigrad.rules.low_rank import *  # noqa: F403
from oxigrad.rules.orthogonal import *  # noqa: F403
from oxigrad.rules.parameter_free import *  # noqa: F403
from oxigrad.rules.preconditioned import *  # noqa: F403
from oxigrad.rules.schedule_free import *  # noqa: F403
from oxigrad.rules.sgd import *  # noqa: F403
