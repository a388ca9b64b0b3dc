# Printed by tools/stubs.py.
from typing import Any

from oxigrad.optax.composed import muon as muon
from oxigrad.optax.composed import noisy_sgd as noisy_sgd
from oxigrad.optax.composed import optimistic_adam as optimistic_adam
from oxigrad.optax.pytrees import State as State
from oxigrad.optax.transformation import Transformation as Transformation
from oxigrad.optax.transformation import transformation as transformation

def adabelief(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16) -> Transformation:
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance."""

def adadelta(learning_rate: Any = None, rho: Any = 0.9, eps: Any = 1e-06, weight_decay: Any = 0.0, weight_decay_mask: Any = None) -> Transformation:
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras, whose defaults alone differ."""

def adafactor(learning_rate: Any = None, min_dim_size_to_factor: Any = 128, decay_rate: Any = 0.8, *, multiply_by_parameter_scale: bool = True, clipping_threshold: Any = 1.0, momentum: Any = None, dtype_momentum: str = 'float32', eps: Any = 1e-30, factored: bool = True) -> Transformation:
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices."""

def adagrad(learning_rate: Any, initial_accumulator_value: Any = 0.1, eps: Any = 1e-07) -> Transformation:
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay."""

def adam(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, *, nesterov: bool = False) -> Transformation:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do."""

def adam_lrd(learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08, dropout_rate: Any = 0.0, amsgrad: Any = None, epsilon_mode: str = 'outside') -> Transformation:
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144)."""

def adamax(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08) -> Transformation:
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax."""

def adamaxw(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0001, mask: Any = None) -> Transformation:
    """Decoupled weight decay (Loshchilov and Hutter 2019); it reads the parameter before the update."""

def adamw(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, weight_decay: Any = 0.0001, mask: Any = None, *, nesterov: bool = False) -> Transformation:
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101)."""

def adan(learning_rate: Any, b1: Any = 0.98, b2: Any = 0.92, b3: Any = 0.99, eps: Any = 1e-08, eps_root: Any = 1e-08, weight_decay: Any = 0.0, mask: Any = None) -> Transformation:
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients."""

def ademamix(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, b3: Any = 0.9999, alpha: Any = 5.0, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, weight_decay: Any = 0.0, mask: Any = None) -> Transformation:
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean."""

def adopt(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.9999, eps: Any = 1e-06, mu_dtype: Any = None, *, use_clipping: bool = True) -> Transformation:
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: the gradient is divided by the root before it."""

def amsgrad(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None) -> Transformation:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do."""

def asgd(learning_rate: Any = 0.01, weight_decay: Any = 0.0, t0: Any = 1, lambd: Any = 0.0, alpha: Any = 0.75, lag: bool = False) -> Transformation:
    """ASGD, averaged gradient descent (Polyak and Juditsky 1992; Bottou 2010)."""

def cocob(learning_rate: Any = 1.0, alpha: Any = 100.0, eps: Any = 1e-08, weight_decay: Any = 0.0, mask: Any = None) -> Transformation:
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax."""

def dadapt_adamw(learning_rate: Any = 1.0, betas: tuple[Any, Any] = (0.9, 0.999), eps: Any = 1e-08, estim_lr0: Any = 1e-06, weight_decay: Any = 0.0) -> Transformation:
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax."""

def dadapt_sgd(learning_rate: Any = 1.0, momentum: Any = 0.0, weight_decay: Any = 0.0, d0: Any = 1e-06, growth_rate: Any = float("inf")) -> Transformation:
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD."""

def dog(learning_rate: Any = 1.0, init_step: tuple[str, Any] = ('heuristic', 1e-06), eps: Any = 1e-08, weight_decay: Any = 0.0, mask: Any = None) -> Transformation:
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax."""

def dowg(learning_rate: Any = 1.0, init_estim_sq_dist: Any = None, eps: Any = 0.0001, weight_decay: Any = 0.0, mask: Any = None) -> Transformation:
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax."""

def fromage(learning_rate: Any, min_norm: Any = 1e-06) -> Transformation:
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling."""

def ftrl(learning_rate: Any = 0.001, power: Any = -0.5, initial_accumulator: Any = 0.1, l1: Any = 0.0, l2: Any = 0.0, shrinkage: Any = 0.0, beta: Any = 0.0) -> Transformation:
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl."""

def lamb(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-06, eps_root: Any = 0.0, weight_decay: Any = 0.0, mask: Any = None) -> Transformation:
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the parameter."""

def lars(learning_rate: Any, weight_decay: Any = 0.0, weight_decay_mask: bool = True, trust_coefficient: Any = 0.001, eps: Any = 0.0, *, momentum: Any = 0.9, nesterov: bool = False) -> Transformation:
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's norm."""

def lion(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None, weight_decay: Any = 0.001, mask: Any = None) -> Transformation:
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675)."""

def madgrad(learning_rate: Any, momentum: Any = 0.9, weight_decay: Any = 0.0, eps: Any = 1e-06) -> Transformation:
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots."""

def momo(learning_rate: Any = 1.0, beta: Any = 0.9, lower_bound: Any = 0.0, weight_decay: Any = 0.0, adapt_lower_bound: bool = False) -> Transformation:
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1)."""

def momo_adam(learning_rate: Any = 0.01, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, lower_bound: Any = 0.0, weight_decay: Any = 0.0, adapt_lower_bound: bool = False) -> Transformation:
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax."""

def nadam(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, *, nesterov: bool = True) -> Transformation:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do."""

def nadamw(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, weight_decay: Any = 0.0001, mask: Any = None, *, nesterov: bool = True) -> Transformation:
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101)."""

def novograd(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.25, eps: Any = 1e-06, eps_root: Any = 0.0, weight_decay: Any = 0.0) -> Transformation:
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf."""

def optimistic_adam_v2(learning_rate: Any, *, alpha: Any = 1.0, beta: Any = 1.0, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, nesterov: bool = True) -> Transformation:
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction."""

def optimistic_gradient_descent(learning_rate: Any, alpha: Any = 1.0, beta: Any = 1.0) -> Transformation:
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient."""

def polyak_sgd(max_learning_rate: Any = 1.0, scaling: Any = 1.0, f_min: Any = 0.0, eps: Any = 0.0, variant: str = 'sps') -> Transformation:
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd."""

def prodigy(learning_rate: Any = 1.0, betas: tuple[Any, Any] = (0.9, 0.999), beta3: Any = None, eps: Any = 1e-08, estim_lr0: Any = 1e-06, estim_lr_coef: Any = 1.0, weight_decay: Any = 0.0, safeguard_warmup: bool = False) -> Transformation:
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate."""

def radam(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, threshold: Any = 5.0) -> Transformation:
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265)."""

def rmsprop(learning_rate: Any, decay: Any = 0.9, eps: Any = 1e-08, initial_scale: Any = 0.0, eps_in_sqrt: bool = True, centered: bool = False, momentum: Any = None, nesterov: bool = False, bias_correction: bool = False) -> Transformation:
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop."""

def rprop(learning_rate: Any, eta_minus: Any = 0.5, eta_plus: Any = 1.2, min_step_size: Any = 1e-06, max_step_size: Any = 50.0) -> Transformation:
    """Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop."""

def schedule_free_adamw(learning_rate: Any = 0.0025, *, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0, weight_lr_power: Any = 2.0, state_dtype: Any = None) -> Transformation:
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`."""

def schedule_free_sgd(learning_rate: Any = 1.0, *, b1: Any = 0.9, weight_decay: Any = 0.0, weight_lr_power: Any = 2.0, state_dtype: Any = None) -> Transformation:
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program."""

def sgd(learning_rate: Any, momentum: Any = None, nesterov: bool = False, accumulator_dtype: Any = None) -> Transformation:
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD."""

def shampoo(learning_rate: Any = 0.1, momentum: Any = 0.0, beta2: Any = 1.0, epsilon: Any = 0.0001, weight_decay: Any = 0.0, interval: Any = 1, max_size: Any = 1200, graft_epsilon: Any = 1e-10, grafting: Any = None) -> Transformation:
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance."""

def sign_sgd(learning_rate: Any) -> Transformation:
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax."""

def signum(learning_rate: Any, beta: Any = 0.9, accumulator_dtype: Any = None) -> Transformation:
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax."""

def sm3(learning_rate: Any, momentum: Any = 0.9) -> Transformation:
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ..."""

def soap(learning_rate: Any = 0.003, beta1: Any = 0.95, beta2: Any = 0.95, epsilon: Any = 1e-08, weight_decay: Any = 0.01, interval: Any = 10, max_size: Any = 10000, vectors: bool = False) -> Transformation:
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics."""

def sophia(learning_rate: Any, b1: Any = 0.965, b2: Any = 0.99, eps: Any = 1e-08, weight_decay: Any = 0.0001, weight_decay_mask: Any = None, gamma: Any = 0.01, clip_threshold: Any = 1.0, update_interval: Any = 10, *, mu_dtype: Any = None, batch_size: Any = 1.0, estimate: str = 'squared') -> Transformation:
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped."""

def yogi(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 0.001) -> Transformation:
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment."""
