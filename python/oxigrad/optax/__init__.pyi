# Printed by make generated.
from typing import Any

from oxigrad.optax.composed import muon as muon
from oxigrad.optax.composed import noisy_sgd as noisy_sgd
from oxigrad.optax.composed import optimistic_adam as optimistic_adam
from oxigrad.optax.pytrees import State as State
from oxigrad.optax.transformation import Transformation as Transformation
from oxigrad.optax.transformation import transformation as transformation

def adabelief(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16,
) -> Transformation:
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-16.
        eps_root: Small number added to the second moment in each step, where it accumulates. A number
            in [0, inf), or a schedule; default 1e-16.
    """

def adadelta(
    learning_rate: Any = None, rho: Any = 0.9, eps: Any = 1e-06, weight_decay: Any = 0.0, weight_decay_mask: Any = None,
) -> Transformation:
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras; only the defaults differ.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default None. See `oxigrad.schedules`.
        rho: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - rho)
            steps. A number in [0, 1], or a schedule; default 0.9.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-06.
        weight_decay: Strength of L2 regularization, which shrinks parameters in proportion to their
            size. A number in [0, inf), or a schedule; default 0.0.
        weight_decay_mask: Pytree of booleans, or a function that returns one: where the weight decay
            applies. Default None.
    """

def adafactor(
    learning_rate: Any = None, min_dim_size_to_factor: Any = 128, decay_rate: Any = 0.8, *,
    multiply_by_parameter_scale: bool = True, clipping_threshold: Any = 1.0, momentum: Any = None,
    dtype_momentum: str = 'float32', eps: Any = 1e-30, factored: bool = True,
) -> Transformation:
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices.

    Hyperparameters:
        learning_rate: Step size; with ``relative_step`` its upper bound is 1 / sqrt(step). A number in
            [0, inf), or a schedule; default None. See `oxigrad.schedules`.
        min_dim_size_to_factor: Smallest size of both axes for which second moments are factored. A
            whole number in [0, inf), or a schedule; default 128.
        decay_rate: Exponent of the decay of second moments: at step t it is 1 - t ** -decay_rate.
            Default 0.8.
        multiply_by_parameter_scale: Whether the step is multiplied by the root mean square of the
            parameter. True or False; default True.
        clipping_threshold: Upper bound of the root mean square of an update. A number in (0, inf], or a
            schedule; default 1.0.
        momentum: Decay of the moving mean of updates; 0 turns momentum off. A number in [0, 1], or a
            schedule; default None. Cost: one slot when not 0.
        dtype_momentum: Dtype in which the momentum is stored; None takes the parameter's dtype. Default
            'float32'.
        eps: Lower bound of root mean squares of gradients; None is the machine epsilon. None or a
            number in [0, inf); default 1e-30.
        factored: Whether second moments of matrices are stored by row and column. Default True.
    """

def adagrad(learning_rate: Any, initial_accumulator_value: Any = 0.1, eps: Any = 1e-07) -> Transformation:
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        initial_accumulator_value: Initial value of the sum of squared gradients. A number in [0, inf),
            or a schedule; default 0.1.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-07.
    """

def adam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, *,
    nesterov: bool = False,
) -> Transformation:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax
    do.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            False.
    """

def adam_lrd(
    learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08, dropout_rate: Any = 0.0,
    amsgrad: Any = None, epsilon_mode: str = 'outside',
) -> Transformation:
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        dropout_rate: Probability that an element of a parameter is not updated in a step. A number in
            [0, 1], or a schedule; default 0.0.
        amsgrad: Whether to divide by the largest second moment so far: "raw" or True before the bias
            correction, "corrected" after it. None, True, False, 'raw' or 'corrected'; default None.
            Cost: one more slot.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside', 'inside' or 'hat'; default 'outside'.
    """

def adamax(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08) -> Transformation:
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the maximum of absolute gradients. A number in [0, 1), or a schedule; default
            0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
    """

def adamaxw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0001, mask: Any = None,
) -> Transformation:
    """Decoupled weight decay (Loshchilov and Hutter 2019); it reads the parameter before the update.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the maximum of absolute gradients. A number in [0, 1), or a schedule; default
            0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength of the decay: a step subtracts learning_rate * weight_decay * parameter.
            A number in [0, inf), or a schedule; default 0.0001.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def adamc(
    learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08, weight_decay: Any = 0.01,
    max_learning_rate: Any = 0.0,
) -> Transformation:
    """AdamC, AdamW with a corrected weight decay (Defazio 2025, arXiv:2506.02285), for layers before a
    normalization.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.01.
        max_learning_rate: Largest learning rate of the schedule; 0 takes the largest one so far. A
            number in [0, inf), or a schedule; default 0.0.
    """

def adamw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None,
    weight_decay: Any = 0.0001, mask: Any = None, *, nesterov: bool = False,
) -> Transformation:
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0001.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            False.
    """

def adan(
    learning_rate: Any, b1: Any = 0.98, b2: Any = 0.92, b3: Any = 0.99, eps: Any = 1e-08, eps_root: Any = 1e-08,
    weight_decay: Any = 0.0, mask: Any = None,
) -> Transformation:
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.98.
        b2: Decay of the moving mean of differences of gradients. A number in [0, 1), or a schedule;
            default 0.92.
        b3: Decay of the moving mean of squared look-ahead gradients. A number in [0, 1), or a schedule;
            default 0.99.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. A number
            in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def ademamix(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, b3: Any = 0.9999, alpha: Any = 5.0, eps: Any = 1e-08,
    eps_root: Any = 0.0, mu_dtype: Any = None, weight_decay: Any = 0.0, mask: Any = None,
) -> Transformation:
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        b3: Decay of the slow moving mean of gradients, which averages over about 1 / (1 - b3) steps. A
            number in [0, 1), or a schedule; default 0.9999.
        alpha: Weight of the slow moving mean beside the fast one. A number in [0, inf), or a schedule;
            default 5.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def adopt(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.9999, eps: Any = 1e-06, mu_dtype: Any = None, *,
    use_clipping: bool = True,
) -> Transformation:
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: gradients are divided by the previous root of v.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.9999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-06.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        use_clipping: Whether the terms of the first moment are use_clipping to (step - 1) ** 0.25. True
            or False; default True.
    """

def amsgrad(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None,
) -> Transformation:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax
    do.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
    """

def asgd(
    learning_rate: Any = 0.01, weight_decay: Any = 0.0, t0: Any = 1, lambd: Any = 0.0, alpha: Any = 0.75,
    lag: bool = False,
) -> Transformation:
    """ASGD, averaged gradient descent (Polyak and Juditsky 1992; Bottou 2010).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.01. See `oxigrad.schedules`.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        t0: First step from which the parameters are averaged. A number in [0, inf), or a schedule;
            default 1.
        lambd: Decay of the parameters and of the learning rate, as in torch.optim.ASGD. A number in [0,
            inf), or a schedule; default 0.0.
        alpha: Exponent of the decay of the learning rate; without effect while ``lambd`` is 0. A number
            in [0, inf), or a schedule; default 0.75.
        lag: Whether to average two steps later and use rates one step late, as torch does. True or
            False; default False.
    """

def cocob(
    learning_rate: Any = 1.0, alpha: Any = 100.0, eps: Any = 1e-08, weight_decay: Any = 0.0, mask: Any = None,
) -> Transformation:
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax.

    Hyperparameters:
        learning_rate: Factor of the gradient; leave it at 1. A number in [0, inf), or a schedule;
            default 1.0. See `oxigrad.schedules`.
        alpha: Inverse of the largest fraction of the reward that the first bets may use. A number in
            [0, inf), or a schedule; default 100.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def dadapt_adamw(
    learning_rate: Any = 1.0, betas: tuple[Any, Any] = (0.9, 0.999), eps: Any = 1e-08, estim_lr0: Any = 1e-06,
    weight_decay: Any = 0.0,
) -> Transformation:
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1, or set a schedule. A number in
            [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf), or a schedule; default 1e-08.
        estim_lr0: Initial estimate of the distance from the first parameters to the solution. A number
            in (0, inf), or a schedule; default 1e-06. Unit: as the parameters.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
    """

def dadapt_sgd(
    learning_rate: Any = 1.0, momentum: Any = 0.0, weight_decay: Any = 0.0, d0: Any = 1e-06,
    growth_rate: Any = float("inf"),
) -> Transformation:
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1, or set a schedule. A number in
            [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        momentum: Weight of the old parameter in the interpolation with the dual average. A number in
            [0, 1), or a schedule; default 0.0. Cost: one slot when not 0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        d0: Initial estimate of the distance from the first parameters to the solution. A number in (0,
            inf), or a schedule; default 1e-06. Unit: as the parameters.
        growth_rate: Largest factor by which the estimate of the distance may grow in one step. A number
            in [1, inf], or a schedule; default inf.
    """

def dog(
    learning_rate: Any = 1.0, init_step: tuple[str, Any] = ('heuristic', 1e-06), eps: Any = 1e-08,
    weight_decay: Any = 0.0, mask: Any = None,
) -> Transformation:
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        init_step: Pair of the kind and value of the first step size, such as ``('heuristic', 1e-6)``.
            Default ('heuristic', 1e-06).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def dowg(
    learning_rate: Any = 1.0, init_estim_sq_dist: Any = None, eps: Any = 0.0001, weight_decay: Any = 0.0,
    mask: Any = None,
) -> Transformation:
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        init_estim_sq_dist: First squared distance from the initial parameters; None takes ``eps``. None
            or a number in (0, inf); default None.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf), or a schedule; default 0.0001.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def fromage(learning_rate: Any, min_norm: Any = 1e-06) -> Transformation:
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        min_norm: Lower bound of the norms of parameter and gradient. A number in [0, inf), or a
            schedule; default 1e-06.
    """

def ftrl(
    learning_rate: Any = 0.001, power: Any = -0.5, initial_accumulator: Any = 0.1, l1: Any = 0.0, l2: Any = 0.0,
    shrinkage: Any = 0.0, beta: Any = 0.0,
) -> Transformation:
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl.

    Hyperparameters:
        learning_rate: Step size, which divides the curvature; a step at the rate 0 changes nothing. A
            number in (0, inf), or a schedule; default 0.001. See `oxigrad.schedules`.
        power: Exponent by which step sizes fall with the accumulated squared gradients. A number in
            (-inf, 0], or a schedule; default -0.5.
        initial_accumulator: Initial value of the accumulator of squared gradients. A number in [0,
            inf), or a schedule; default 0.1.
        l1: Strength of L1 regularization, which drives small parameters to zero. A number in [0, inf),
            or a schedule; default 0.0.
        l2: Strength of L2 regularization, which shrinks parameters in proportion to their size. A
            number in [0, inf), or a schedule; default 0.0.
        shrinkage: Strength of L2 regularization that enters by the gradient only. A number in [0, inf),
            or a schedule; default 0.0.
        beta: Constant added to the root of the accumulated squared gradients. A number in [0, inf), or
            a schedule; default 0.0.
    """

def lamb(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-06, eps_root: Any = 0.0, weight_decay: Any = 0.0,
    mask: Any = None,
) -> Transformation:
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the
    parameter.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-06.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def laprop(learning_rate: Any = 0.0004, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-15) -> Transformation:
    """LaProp (Ziyin et al. 2020, arXiv:2002.04839, algorithm 1): momentum of gradients that are normalized first.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.0004. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of normalized gradients. A number in [0, 1), or a schedule;
            default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-15.
    """

def lars(
    learning_rate: Any, weight_decay: Any = 0.0, weight_decay_mask: bool = True, trust_coefficient: Any = 0.001,
    eps: Any = 0.0, *, momentum: Any = 0.9, nesterov: bool = False,
) -> Transformation:
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's
    norm.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        weight_decay_mask: Pytree of booleans, or a function that returns one: where the weight decay
            applies. Default True.
        trust_coefficient: Length of a step as a share of the norm of the parameter. A number in [0,
            inf), or a schedule; default 0.001.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 0.0.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default 0.9. Cost: one slot when not 0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            False.
    """

def lion(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None, weight_decay: Any = 0.001,
    mask: Any = None,
) -> Transformation:
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Weight of the momentum in the interpolation whose sign is the step. A number in [0, 1], or a
            schedule; default 0.9.
        b2: Decay of the momentum, a moving mean of gradients. A number in [0, 1], or a schedule;
            default 0.99.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.001.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def madgrad(learning_rate: Any, momentum: Any = 0.9, weight_decay: Any = 0.0, eps: Any = 1e-06) -> Transformation:
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        momentum: Weight of the old parameter in the interpolation with the dual average. A number in
            [0, 1), or a schedule; default 0.9. Cost: one slot when not 0.
        weight_decay: Strength of L2 regularization, which shrinks parameters in proportion to their
            size. A number in [0, inf), or a schedule; default 0.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-06.
    """

def momo(
    learning_rate: Any = 1.0, beta: Any = 0.9, lower_bound: Any = 0.0, weight_decay: Any = 0.0,
    adapt_lower_bound: bool = False,
) -> Transformation:
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1).

    Hyperparameters:
        learning_rate: Upper bound of the step size, which falls as the loss nears its lower bound. A
            number in [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        beta: Decay of the moving means of losses and gradients. A number in [0, 1), or a schedule;
            default 0.9.
        lower_bound: Lower bound of the loss, from which the step size is computed. A number, or a
            schedule; default 0.0. Unit: as the loss.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        adapt_lower_bound: Whether the lower bound of the loss is estimated during training. True or
            False; default False.
    """

def momo_adam(
    learning_rate: Any = 0.01, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, lower_bound: Any = 0.0,
    weight_decay: Any = 0.0, adapt_lower_bound: bool = False,
) -> Transformation:
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax.

    Hyperparameters:
        learning_rate: Upper bound of the step size, which falls as the loss nears its lower bound. A
            number in [0, inf), or a schedule; default 0.01. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf), or a schedule; default 1e-08.
        lower_bound: Lower bound of the loss, from which the step size is computed. A number, or a
            schedule; default 0.0. Unit: as the loss.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        adapt_lower_bound: Whether the lower bound of the loss is estimated during training. True or
            False; default False.
    """

def nadam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None, *,
    nesterov: bool = True,
) -> Transformation:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax
    do.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            True.
    """

def nadamw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, mu_dtype: Any = None,
    weight_decay: Any = 0.0001, mask: Any = None, *, nesterov: bool = True,
) -> Transformation:
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0001.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            True.
    """

def novograd(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.25, eps: Any = 1e-06, eps_root: Any = 0.0, weight_decay: Any = 0.0,
) -> Transformation:
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the squared gradient norm of each parameter. A number in [0, 1), or a schedule;
            default 0.25.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-06.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
    """

def optimistic_adam_v2(
    learning_rate: Any, *, alpha: Any = 1.0, beta: Any = 1.0, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08,
    eps_root: Any = 0.0, mu_dtype: Any = None, nesterov: bool = True,
) -> Transformation:
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        alpha: Weight of Adam's current direction in the step. A number in [0, inf), or a schedule;
            default 1.0.
        beta: Weight of the change from the last direction in the step. A number in [0, inf), or a
            schedule; default 1.0.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            True.
    """

def optimistic_gradient_descent(learning_rate: Any, alpha: Any = 1.0, beta: Any = 1.0) -> Transformation:
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        alpha: Weight of the current gradient in the step. A number in [0, inf), or a schedule; default
            1.0.
        beta: Weight of the change from the last gradient in the step. A number in [0, inf), or a
            schedule; default 1.0.
    """

def polyak_sgd(
    max_learning_rate: Any = 1.0, scaling: Any = 1.0, f_min: Any = 0.0, eps: Any = 0.0, variant: str = 'sps',
) -> Transformation:
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd.

    Hyperparameters:
        max_learning_rate: Upper bound of Polyak's step size. A number in [0, inf], or a schedule;
            default 1.0.
        scaling: Step size, by which every update is multiplied. A number in [0, inf), or a schedule;
            default 1.0. See `oxigrad.schedules`.
        f_min: Lower bound of the loss, from which the step size is computed. A number, or a schedule;
            default 0.0. Unit: as the loss.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 0.0.
        variant: Treatment of a loss below the bound: "sps" steps uphill, "sps+" takes no step. 'sps' or
            'sps+'; default 'sps'.
    """

def prodigy(
    learning_rate: Any = 1.0, betas: tuple[Any, Any] = (0.9, 0.999), beta3: Any = None, eps: Any = 1e-08,
    estim_lr0: Any = 1e-06, estim_lr_coef: Any = 1.0, weight_decay: Any = 0.0, safeguard_warmup: bool = False,
) -> Transformation:
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1, or set a schedule. A number in
            [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        beta3: Decay of the sums that estimate the distance; 0 means the square root of ``beta2``. A
            number in [0, 1), or a schedule; default None.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        estim_lr0: Initial estimate of the distance from the first parameters to the solution. A number
            in (0, inf), or a schedule; default 1e-06. Unit: as the parameters.
        estim_lr_coef: Factor of the estimate of the distance. A number in (0, inf), or a schedule;
            default 1.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        safeguard_warmup: Whether the estimate ignores the learning rate, so that a warm-up does not
            slow it. True or False; default False.
    """

def radam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, eps_root: Any = 0.0, threshold: Any = 5.0,
) -> Transformation:
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        threshold: Length of the approximated average above which the variance is rectified. A number in
            [0, inf), or a schedule; default 5.0.
    """

def rmsprop(
    learning_rate: Any, decay: Any = 0.9, eps: Any = 1e-08, initial_scale: Any = 0.0, eps_in_sqrt: bool = True,
    centered: bool = False, momentum: Any = None, nesterov: bool = False, bias_correction: bool = False,
) -> Transformation:
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        decay: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - decay)
            steps. A number in [0, 1], or a schedule; default 0.9.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        initial_scale: Initial value of the accumulator of squared gradients. A number in [0, inf), or a
            schedule; default 0.0.
        eps_in_sqrt: Whether ``eps`` is added inside the square root, and not to the root. Default True.
        centered: Whether the mean gradient is subtracted from the second moment. True or False; default
            False.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default None. Cost: one slot when not 0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            False.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default False.
    """

def rprop(
    learning_rate: Any, eta_minus: Any = 0.5, eta_plus: Any = 1.2, min_step_size: Any = 1e-06,
    max_step_size: Any = 50.0,
) -> Transformation:
    """Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop.

    Hyperparameters:
        learning_rate: First step size of every element, clipped to ``[min_step_size, max_step_size]``.
            See `oxigrad.schedules`.
        eta_minus: Factor of a step size where the gradient changes sign. A number in (0, 1), or a
            schedule; default 0.5.
        eta_plus: Factor of a step size where the gradient keeps its sign. A number in (1, inf), or a
            schedule; default 1.2.
        min_step_size: Smallest step size of an element. A number in [0, inf), or a schedule; default
            1e-06.
        max_step_size: Largest step size of an element. A number in [0, inf], or a schedule; default
            50.0.
    """

def schedule_free_adamw(
    learning_rate: Any = 0.0025, *, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0,
    weight_lr_power: Any = 2.0, state_dtype: Any = None,
) -> Transformation:
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.0025. See `oxigrad.schedules`.
        b1: Share of the average in the point at which gradients are taken. A number in (0, 1], or a
            schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        weight_lr_power: Exponent of the learning rate in the weight of a step in the average. A number
            in [0, inf), or a schedule; default 2.0.
        state_dtype: Dtype in which the iterate ``z`` is stored; None takes the parameter's dtype.
            Default None.
    """

def schedule_free_sgd(
    learning_rate: Any = 1.0, *, b1: Any = 0.9, weight_decay: Any = 0.0, weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> Transformation:
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        b1: Share of the average in the point at which gradients are taken. A number in (0, 1], or a
            schedule; default 0.9.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        weight_lr_power: Exponent of the learning rate in the weight of a step in the average. A number
            in [0, inf), or a schedule; default 2.0.
        state_dtype: Dtype in which the iterate ``z`` is stored; None takes the parameter's dtype.
            Default None.
    """

def sgd(
    learning_rate: Any, momentum: Any = None, nesterov: bool = False, accumulator_dtype: Any = None,
) -> Transformation:
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default None. Cost: one slot when not 0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. Default
            False.
        accumulator_dtype: Dtype in which the momentum is stored; None takes the parameter's dtype.
            Default None.
    """

def shampoo(
    learning_rate: Any = 0.1, momentum: Any = 0.0, beta2: Any = 1.0, epsilon: Any = 0.0001, weight_decay: Any = 0.0,
    interval: Any = 1, max_size: Any = 1200, graft_epsilon: Any = 1e-10, grafting: Any = None,
) -> Transformation:
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.1. See `oxigrad.schedules`.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default 0.0. Cost: one slot when not 0.
        beta2: Decay of the covariances of gradients; 1 sums them. A number in [0, 1], or a schedule;
            default 1.0.
        epsilon: Small number added to the covariances before their root is taken. A number in [0, inf),
            or a schedule; default 0.0001.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        interval: Number of steps between computations of the inverse roots, which dominate the time. A
            whole number in [1, inf), or a schedule; default 1.
        max_size: Longest axis with a full covariance; longer axes have a diagonal one. A whole number
            in [0, inf], or a schedule; default 1200.
        graft_epsilon: Small number added to the denominator of the grafted Adagrad step. A number in
            [0, inf), or a schedule; default 1e-10.
        grafting: Rule whose step length is taken: "sgd", "adagrad", or None for Shampoo's own. 'sgd',
            'adagrad' or None; default None.
    """

def sign_sgd(learning_rate: Any) -> Transformation:
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
    """

def signum(learning_rate: Any, beta: Any = 0.9, accumulator_dtype: Any = None) -> Transformation:
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        beta: Decay of the mean gradient whose sign is taken; 0 gives signSGD, which has no slot. A
            number in [0, 1], or a schedule; default 0.9.
        accumulator_dtype: Dtype in which the momentum is stored; None takes the parameter's dtype.
            Default None.
    """

def simplified_ademamix(
    learning_rate: Any, b1: Any = 0.99, b2: Any = 0.95, alpha: Any = 0.0, eps: Any = 1e-08, eps_root: Any = 0.0,
    weight_decay: Any = 0.0, mask: Any = None,
) -> Transformation:
    """Simplified AdEMAMix (Morwani et al. 2025, arXiv:2502.02431), as in optax: one momentum and the current
    gradient.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the sum of gradients, which grows to about 1 / (1 - b1) gradients. A number in [0,
            1), or a schedule; default 0.99.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.95.
        alpha: Weight of the current gradient beside the sum of gradients. A number in [0, inf), or a
            schedule; default 0.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        eps_root: Small number added to the second moment inside the root; None adds nothing. None or a
            number in [0, inf); default 0.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        mask: Pytree of booleans, or a function of the parameters that returns one: where the weight
            decay applies. Default None.
    """

def sm3(learning_rate: Any, momentum: Any = 0.9) -> Transformation:
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ...

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        momentum: Decay of the moving mean of scaled gradients. A number in [0, 1], or a schedule;
            default 0.9. Cost: one slot when not 0.
    """

def soap(
    learning_rate: Any = 0.003, beta1: Any = 0.95, beta2: Any = 0.95, epsilon: Any = 1e-08, weight_decay: Any = 0.01,
    interval: Any = 10, max_size: Any = 10000, vectors: bool = False,
) -> Transformation:
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.003. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.95.
        beta2: Decay of second moments and of the covariances of gradients. A number in [0, 1), or a
            schedule; default 0.95.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.01.
        interval: Number of steps between updates of the bases, each a QR decomposition. A whole number
            in [1, inf), or a schedule; default 10.
        max_size: Longest axis that is rotated; longer axes stay as they are. A whole number in [0,
            inf], or a schedule; default 10000.
        vectors: Whether parameters with one axis are rotated too. True or False; default False.
    """

def sophia(
    learning_rate: Any, b1: Any = 0.965, b2: Any = 0.99, eps: Any = 1e-08, weight_decay: Any = 0.0001,
    weight_decay_mask: Any = None, gamma: Any = 0.01, clip_threshold: Any = 1.0, update_interval: Any = 10, *,
    mu_dtype: Any = None, batch_size: Any = 1.0, estimate: str = 'squared',
) -> Transformation:
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped.

    Hyperparameters:
        learning_rate: Step size, by which update_interval update is multiplied. See
            `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.965.
        b2: Decay of the moving mean of the Hessian's diagonal. A number in [0, 1), or a schedule;
            default 0.99.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0001.
        weight_decay_mask: Pytree of booleans, or a function that returns one: where the weight decay
            applies. Default None.
        gamma: Factor of the Hessian's diagonal in the denominator. A number in [0, inf), or a schedule;
            default 0.01.
        clip_threshold: Largest absolute value of an element of the step before the learning rate. A
            number in [0, inf], or a schedule; default 1.0.
        update_interval: Number of steps between updates of the Hessian's diagonal. A whole number in
            [1, inf), or a schedule; default 10.
        mu_dtype: Dtype in which the first moment is stored; None takes the parameter's dtype. Default
            None.
        batch_size: Batch size, by which the squared gradient estimates the Hessian's diagonal. A number
            in (0, inf), or a schedule; default 1.0.
        estimate: Source of the Hessian's diagonal: "squared" gradients, or "given" in the slot ``h``.
            'squared' or 'given'; default 'squared'.
    """

def stable_adamw(
    learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.99, epsilon: Any = 1e-06, weight_decay: Any = 0.01,
) -> Transformation:
    """StableAdamW (Wortsman et al. 2023, arXiv:2304.13013, algorithm 2): AdamW with the update clipping of
    Adafactor.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.99.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.01.
    """

def yogi(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 0.001) -> Transformation:
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. See `oxigrad.schedules`.
        b1: Decay of the moving mean of gradients, which averages over about 1 / (1 - b1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        b2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - b2) steps.
            A number in [0, 1), or a schedule; default 0.999.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf), or a schedule; default 0.001.
    """
