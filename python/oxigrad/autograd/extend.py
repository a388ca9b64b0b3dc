"""Names for extensions: primitives, their rules, and vector spaces, as `autograd.extend` has them."""

from oxigrad.autograd.core import JVPNode as JVPNode
from oxigrad.autograd.core import SparseObject as SparseObject
from oxigrad.autograd.core import VJPNode as VJPNode
from oxigrad.autograd.core import VSpace as VSpace
from oxigrad.autograd.core import vspace as vspace
from oxigrad.autograd.primitives import *
from oxigrad.autograd.tracer import Box as Box
from oxigrad.autograd.tracer import notrace_primitive as notrace_primitive
from oxigrad.autograd.tracer import register_notrace as register_notrace
from oxigrad.autograd.wrap_util import subvals as subvals
