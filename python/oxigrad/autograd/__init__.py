"""HIPS autograd's names with autograd's meaning, for programs and libraries that are written with it.

``import oxigrad.autograd as autograd`` in one file, or `install` for a whole process:

>>> from oxigrad import autograd
>>> import oxigrad.autograd.numpy as anp
>>> autograd.grad(lambda x: anp.sum(anp.tanh(x) ** 2))(anp.array([0.0, 0.5])).round(6)
array([0.      , 0.726862])
"""

from oxigrad.autograd import numpy as numpy
from oxigrad.autograd.builtins import dict as dict
from oxigrad.autograd.builtins import isinstance as isinstance
from oxigrad.autograd.builtins import list as list
from oxigrad.autograd.builtins import tuple as tuple
from oxigrad.autograd.builtins import type as type
from oxigrad.autograd.differential_operators import checkpoint as checkpoint
from oxigrad.autograd.differential_operators import deriv as deriv
from oxigrad.autograd.differential_operators import elementwise_grad as elementwise_grad
from oxigrad.autograd.differential_operators import grad as grad
from oxigrad.autograd.differential_operators import grad_and_aux as grad_and_aux
from oxigrad.autograd.differential_operators import grad_named as grad_named
from oxigrad.autograd.differential_operators import hessian as hessian
from oxigrad.autograd.differential_operators import hessian_tensor_product as hessian_tensor_product
from oxigrad.autograd.differential_operators import hessian_vector_product as hessian_vector_product
from oxigrad.autograd.differential_operators import holomorphic_grad as holomorphic_grad
from oxigrad.autograd.differential_operators import jacobian as jacobian
from oxigrad.autograd.differential_operators import make_ggnvp as make_ggnvp
from oxigrad.autograd.differential_operators import make_hvp as make_hvp
from oxigrad.autograd.differential_operators import make_jvp as make_jvp
from oxigrad.autograd.differential_operators import make_vjp as make_vjp
from oxigrad.autograd.differential_operators import multigrad_dict as multigrad_dict
from oxigrad.autograd.differential_operators import tensor_jacobian_product as tensor_jacobian_product
from oxigrad.autograd.differential_operators import value_and_grad as value_and_grad
from oxigrad.autograd.differential_operators import vector_jacobian_product as vector_jacobian_product
from oxigrad.autograd.modules import install as install
from oxigrad.autograd.primitives import primitive as primitive
