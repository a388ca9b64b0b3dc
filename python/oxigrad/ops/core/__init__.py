"""The ops that a tape records, the functions of the standard that are composed of them, and the checks of arguments.

* `primitives`: the ops that all other functions are composed of; `host_calls`: functions of NumPy arrays as recorded
  ops.
* `composite`: the decorator of composite functions, which call the array library's function on plain values.
* `standard`, `sets`, `dtypes`: functions of the standard; `products`: products and contractions, such as ``einsum``.
* `guarded`: building blocks with derivatives at the edges of their domains.
* `indexed_update`: ``x.at[key].set(value)``, and item assignment to a variable; `in_place`: NumPy's functions that
  write.
* `array_like`: lists of variables as arrays; `shapes`: checks of axes and shapes, and the errors that name them.
* `aliasing`: detection of arrays that share memory, and copies of them.
"""
