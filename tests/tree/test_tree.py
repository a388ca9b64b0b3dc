"""Trees: flattening, key paths, selection of parameters, and rebuilding of containers."""

import collections
import copy
import dataclasses
import gc
import re
import typing
import weakref

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxigrad import _core, tree
from oxigrad._core import KeyPathError, StructureError
from oxigrad.tree import Key, KeyPath

DEPTH = 100_000


@dataclasses.dataclass
class Dense:
    weight: typing.Any
    bias: typing.Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    weight: typing.Any
    bias: typing.Any = None


@dataclasses.dataclass(slots=True)
class Slotted:
    weight: typing.Any
    bias: typing.Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlotted:
    weight: typing.Any
    bias: typing.Any = None


@dataclasses.dataclass(kw_only=True)
class Inherited(Dense):
    gain: typing.Any = None


T = typing.TypeVar("T")


@dataclasses.dataclass
class Generic(typing.Generic[T]):
    weight: T
    bias: T | None = None


class Pair(typing.NamedTuple):
    weight: typing.Any
    bias: typing.Any = None


class Undecorated(Dense):
    """Inherits the fields of a dataclass."""


class WithSlot:
    __slots__ = ("note",)


@dataclasses.dataclass(slots=True)
class ExtraSlot(WithSlot):
    weight: typing.Any
    bias: typing.Any = None


@dataclasses.dataclass
class OfDict(dict):
    """A dataclass whose base is made in C."""

    weight: typing.Any
    bias: typing.Any = None

    __hash__ = None


@tree.register(fields=("weight", "bias"))
class Registered:
    def __init__(self, weight, bias=None):
        self.weight, self.bias = weight, bias


class Opaque:
    """Registered with functions."""

    def __init__(self, weight, bias=None):
        self.parts = [weight, bias]


tree.register(Opaque, flatten=lambda x: (x.parts, "rest"), unflatten=lambda rest, parts: Opaque(*parts))

DATACLASSES = [Dense, Frozen, Slotted, FrozenSlotted, Inherited, Generic, Undecorated, ExtraSlot]
BY_FIELD = [*DATACLASSES, OfDict, Pair, Registered]
NESTS = {
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "dict": lambda x: {"a": x},
    "OrderedDict": lambda x: collections.OrderedDict(a=x),
    **{cls.__name__: cls for cls in [*BY_FIELD, Opaque]},
}


def names(paths):
    return [str(path) for path in paths]


def raises(error, message):
    return pytest.raises(error, match=f"^{re.escape(message)}$")


# --- flatten and unflatten -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", NESTS.values(), ids=NESTS)
def test_containers_flatten_and_come_back_with_their_type(make):
    before = make(1.0)
    leaves, structure = tree.flatten(before)
    after = tree.unflatten(structure, [x * 2 for x in leaves])
    assert leaves[0] == 1.0
    assert type(after) is type(before)
    assert after is not before
    assert tree.leaves(after)[0] == 2.0
    assert tree.leaves(before) == leaves
    assert tree.flatten(after)[1] == structure
    assert hash(tree.flatten(after)[1]) == hash(structure)


@pytest.mark.parametrize(
    "leaf", [1, 1.5, "text", b"bytes", {1}, len, object(), np.ones(2), Dense, range(3)], ids=lambda x: type(x).__name__
)
def test_any_other_object_is_a_leaf(leaf):
    leaves, structure = tree.flatten(leaf)
    assert len(leaves) == len(structure) == 1
    assert leaves[0] is leaf
    assert tree.unflatten(structure, leaves) is leaf
    assert names(structure.paths()) == [""]


def test_none_is_a_container_without_children():
    leaves, structure = tree.flatten([None, {"a": None}, 3])
    assert leaves == [3]
    assert tree.unflatten(structure, [4]) == [None, {"a": None}, 4]
    assert tree.leaves(None) == []


def test_structures_compare_by_types_and_keys_in_order():
    same = [tree.flatten({"a": [1, 2], "b": Dense(1)})[1] for _ in range(2)]
    assert same[0] == same[1]
    assert len({*same}) == 1
    assert repr(same[0]) == "Structure({a: [*, *], b: Dense(weight=*, bias=None)})"
    others = [{"a": [1], "b": Dense(1)}, {"a": (1, 2), "b": Dense(1)}, {"b": Dense(1), "a": [1, 2]}, {"a": 1, "b": 2}]
    assert all(tree.flatten(other)[1] != same[0] for other in others)
    assert tree.flatten(Dense(1))[1] != tree.flatten(Frozen(1))[1]


def test_dicts_keep_the_insertion_order_and_their_kind():
    ordered = collections.OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    assert tree.leaves({"b": 1, "a": 2}) == [1, 2]
    assert tree.leaves(ordered) == [2, 1]
    assert list(tree.map(abs, ordered)) == ["b", "a"]
    default = tree.map(abs, collections.defaultdict(list, a=1))
    assert default["missing"] == []
    with pytest.raises(KeyPathError):
        KeyPath([Key.Item("b")])(default)


def test_a_list_subclass_keeps_its_type_and_attributes():
    class Layers(list):
        pass

    layers = Layers([1, 2])
    layers.note = "kept"
    after = tree.map(lambda x: -x, layers)
    assert (type(after), after, after.note, layers) == (Layers, [-1, -2], "kept", [1, 2])


@pytest.mark.parametrize("cls", DATACLASSES)
def test_rebuilding_calls_no_init_and_keeps_other_attributes(cls):
    calls = []

    class Counted(cls):
        def __init__(self, *args, **kwargs):
            calls.append("init")
            super().__init__(*args, **kwargs)

        def __post_init__(self):
            calls.append("post_init")

    model = Counted(1.0)
    object.__setattr__(model, "note", "kept")
    calls.clear()
    after = tree.map(lambda x: x + 1, model)
    assert (after.weight, after.note, calls, model.weight) == (2.0, "kept", [], 1.0)


def test_slots_that_are_no_fields_are_kept():
    model = ExtraSlot(1.0)
    model.note = "kept"
    assert tree.map(abs, model).note == "kept"


def test_a_dataclass_made_in_c_is_copied():
    model = OfDict(1.0)
    model["item"] = 5
    after = tree.map(lambda x: x + 1, model)
    assert (after.weight, after["item"], model.weight) == (2.0, 5, 1.0)


def test_fields_without_init_and_without_a_value():
    @dataclasses.dataclass
    class Late:
        weight: float
        cache: typing.Any = dataclasses.field(init=False)
        scale: float = dataclasses.field(init=False, default=3.0)
        shared: typing.ClassVar[int] = 7
        seed: dataclasses.InitVar[int] = 0

    leaves, structure = tree.flatten(Late(1.0))
    assert leaves == [1.0, 3.0]
    assert "cache=unset" in repr(structure)
    after = tree.unflatten(structure, [2.0, 4.0])
    assert (after.weight, after.scale, hasattr(after, "cache")) == (2.0, 4.0, False)
    cache = tree.path("cache", after)
    with raises(KeyPathError, "cache: the field has no value"):
        cache(after)
    assert cache(cache.set(after, 9)) == 9
    assert tree.leaves(after) == [2.0, 9, 4.0]


def test_the_number_of_leaves_is_checked():
    structure = tree.flatten([1, 2])[1]
    with raises(StructureError, "the structure has 2 leaves, found 1"):
        tree.unflatten(structure, [1])
    assert tree.unflatten(structure, iter([3, 4])) == [3, 4]


def test_structures_and_their_objects_are_collected():
    def make(holder):
        structure = tree.flatten(holder)[1]
        holder.note = structure
        return weakref.ref(holder)

    class Local(collections.OrderedDict):
        pass

    ref = make(Local(a=1))
    gc.collect()
    assert ref() is None


# --- depth and cycles ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "OrderedDict", "Dense", "FrozenSlotted", "Pair", "Opaque"])
def test_a_nest_of_100_000_levels(kind):
    make = NESTS[kind]
    deep = 1.0
    for _ in range(DEPTH):
        deep = make(deep)
    leaves, structure = tree.flatten(deep)
    (path,) = structure.paths()
    assert leaves == [1.0]
    assert len(path) == DEPTH
    assert path(tree.map(lambda x: x + 1, deep)) == 2.0
    assert tree.path(str(path), deep) == path
    assert path(path.set(deep, 3.0)) == 3.0
    assert path in {*tree.key_paths(deep)}
    assert repr(structure).count("*") == 1
    assert tree.unflatten(structure, [1.0]) is not deep


def cyclic_list():
    x = [1]
    x.append({"a": [2, x]})
    return x, "1.a.1: a cycle, this is the same object as the root"


def cyclic_field():
    x = Dense(None)
    x.weight = (x,)
    return {"m": x}, "m.weight.0: a cycle, this is the same object as m"


def cyclic_below_the_fold():
    x = []
    x.append(x)
    deep, path = x, "0"
    for _ in range(500):
        deep, path = [deep], f"0.{path}"
    return deep, f"{path}: a cycle, this is the same object as {path[:-2]}"


@pytest.mark.parametrize("make", [cyclic_list, cyclic_field, cyclic_below_the_fold])
@pytest.mark.parametrize("use", [tree.flatten, tree.key_paths, tree.parameters, lambda x: tree.map(abs, x)])
def test_a_cycle_is_told_by_path(make, use):
    cyclic, message = make()
    with raises(StructureError, message):
        use(cyclic)


def test_a_part_at_two_paths_is_no_cycle():
    part = [1]
    leaves, structure = tree.flatten([part, part])
    after = tree.unflatten(structure, leaves)
    assert after == [[1], [1]]
    assert after[0] is not after[1]


# --- dict keys -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (1.5, "h.0: a dict key must be a str or an int, found 1.5 (float)"),
        (True, "h.0: a dict key must be a str or an int, found True (bool)"),
        (("a",), "h.0: a dict key must be a str or an int, found ('a',) (tuple)"),
        (2**80, f"h.0: the dict key {2**80} has more than 64 bits"),
        ("\ud800", r"h.0: the dict key '\ud800' cannot be written as UTF-8"),
    ],
)
def test_other_dict_keys_are_refused_by_path(key, message):
    with raises(StructureError, message):
        tree.flatten({"h": [{key: 1}]})


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        ("a", "a"),
        ("layer-norm_1", "layer-norm_1"),
        ("größe", "größe"),
        (3, "3"),
        (-3, "-3"),
        ("3", '"3"'),
        ("-3", '"-3"'),
        ("a.b", '"a.b"'),
        ("", '""'),
        ('"', r'"\""'),
        ("\\", r'"\\"'),
        ("a b", '"a b"'),
        ("*", '"*"'),
        ("\n\x00", r'"\n\u{0}"'),
    ],
)
def test_dict_keys_print_and_read_back(key, printed):
    model = {"head": {key: 7, "other": 1}}
    path = tree.flatten(model)[1].paths()[0]
    assert str(path) == f"head.{printed}"
    assert tree.path(str(path), model) == path
    assert path(model) == 7


# --- key paths -------------------------------------------------------------------------------------------------------


def test_a_path_is_a_value():
    model = {"layers": [Dense(1), Pair(2)], 0: 3}
    weight, item = tree.path("layers.0.weight", model), tree.path("0", model)
    assert list(weight) == [Key.Item("layers"), Key.Index(0), Key.Field("weight")]
    assert KeyPath(weight) == weight
    assert hash(KeyPath(weight)) == hash(weight)
    assert item != KeyPath([Key.Index(0)])
    assert weight != "layers.0.weight"
    assert "layers.0.weight" not in {weight: 1}
    assert weight.parent / Key.Field("bias") == KeyPath([*weight.parent, Key.Field("bias")])
    assert KeyPath() / weight == weight
    assert weight / KeyPath() == weight
    assert weight.parent.parent.parent == KeyPath()
    assert KeyPath().parent is None
    assert (len(weight), len(KeyPath()), bool(KeyPath())) == (3, 0, True)
    assert repr(weight) == "KeyPath('layers.0.weight')"
    assert copy.deepcopy({weight: 1}) == {weight: 1}
    indices = [KeyPath([Key.Index(i)]) for i in (10, 9, 2)]
    assert sorted(indices) == indices[::-1]
    with pytest.raises(TypeError):
        weight < "layers"  # noqa: B015


def test_keys_match_by_kind():
    match Key.Item("a"):
        case Key.Item(key):
            assert key == "a"
        case _:
            pytest.fail("an item matches an item")
    assert [repr(key) for key in (Key.Field("a"), Key.Index(1), Key.Item("a"), Key.Item(2))] == [
        'Key.Field("a")',
        "Key.Index(1)",
        'Key.Item("a")',
        "Key.Item(2)",
    ]


MODEL = {"layers": [1, 2, {"w": np.ones(2)}], "n": None, "l": Dense(Pair(3)), "e": {}, 3: 4, "3": 5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layers.7", "layers.7: the list has 3 items"),
        ("layers.-1", "layers.-1: the list has 3 items"),
        ("layers.w", "layers.w: the list has 3 items"),
        ("layers.2.x.y", "layers.2.x: the dict has the keys w"),
        ("layers.2.w.y", "layers.2.w.y: layers.2.w is a leaf (ndarray)"),
        ("n.x", "n.x: n is None"),
        ("l.wieght", "l.wieght: Dense has the fields weight, bias"),
        ("l.weight.x", "l.weight.x: Pair has the fields weight, bias"),
        ("l.0", "l.0: Dense has the fields weight, bias"),
        ("e.a", "e.a: the dict is empty"),
        ("4", '4: the dict has the keys layers, n, l, e, 3, "3"'),
        ("a..b", 'cannot read the path "a..b": a key is empty; an empty dict key is written ""'),
        ("a b", 'cannot read the path "a b": the key "a b" needs double quotes'),
    ],
)
def test_an_unknown_path_raises_with_the_known_ones(text, message):
    with raises(KeyPathError, message):
        tree.path(text, MODEL)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"layers": [1]}, "layers.2: the list has 1 item"),
        ({"layers": (1, 2)}, "layers.2: the tuple has 2 items"),
        ({"layers": [1, 2, 3]}, "layers.2.w: layers.2 is a leaf (int)"),
        ({}, "layers: the dict is empty"),
        (5, "layers: the root is a leaf (int)"),
        ({str(i): i for i in range(9)}, 'layers: the dict has the keys "0", "1", "2", "3", "4", "5", "6", "7", ...'),
    ],
)
def test_reading_and_writing_a_missing_path_raises(other, message):
    path = tree.path("layers.2.w", MODEL)
    for use in (path, path.writable, lambda tree: path.set(tree, 0)):
        with raises(KeyPathError, message):
            use(other)


def test_the_root_path():
    assert KeyPath()(MODEL) is MODEL
    assert tree.path("", MODEL) == KeyPath()
    assert KeyPath().set(MODEL, 5) == 5
    assert not KeyPath().writable(MODEL)


WRITABLE = [
    ([1], True),
    ({"a": 1}, True),
    (collections.OrderedDict(a=1), True),
    *((cls(1), True) for cls in (Dense, Slotted, Inherited, Generic, Undecorated, ExtraSlot, Registered)),
    ((1,), False),
    *((cls(1), False) for cls in (Pair, Frozen, FrozenSlotted, Opaque)),
]


@pytest.mark.parametrize(("holder", "writable"), WRITABLE, ids=lambda x: type(x).__name__)
def test_set_writes_in_place_or_rebuilds_the_chain(holder, writable):
    path = tree.flatten(holder)[1].paths()[0]
    before = copy.deepcopy(holder)
    assert path.writable(holder) is writable
    after = path.set(copy.copy(holder), 2)
    assert path(after) == 2
    assert type(after) is type(holder)
    # In a list, a new holder is written to the list; in a frozen chain, there is a new root.
    top, chain = [holder], Frozen((holder, "sibling"))
    below = KeyPath([Key.Index(0)]) / path
    inside = KeyPath([Key.Field("weight"), Key.Index(0)]) / path
    assert inside.writable(chain) is writable
    new = inside.set(chain, 3)
    assert inside(new) == 3
    assert (new is chain) is writable
    assert new.weight[1] == "sibling"
    assert below.set(top, 4) is top
    assert below(top) == 4
    assert (top[0] is holder) is writable
    if not writable:
        assert tree.leaves(holder) == tree.leaves(before)


def test_a_registered_class_may_refuse_assignment():
    @tree.register(fields=("weight",), writable=False)
    class Constant:
        def __init__(self, weight):
            self.weight, self.name = weight, "kept"

    constant = Constant(1)
    path = tree.path("weight", constant)
    after = path.set(constant, 2)
    assert (constant.weight, after.weight, after.name, path.writable(constant)) == (1, 2, "kept", False)


def test_subclasses_of_a_class_registered_by_fields_are_containers():
    class Sub(Registered):
        pass

    after = tree.map(lambda x: x + 1, Sub(1))
    assert (type(after), after.weight) == (Sub, 2)


def test_registering_later_counts():
    class Late:
        def __init__(self):
            self.weight = 1

    assert len(tree.leaves([Late()])) == 1
    tree.register(Late, fields=["weight"])
    assert tree.leaves([Late()]) == [1]


def test_children_by_functions_may_have_names():
    class Named:
        def __init__(self, **parts):
            self.parts = parts

    tree.register(
        Named, flatten=lambda x: (x.parts, [*x.parts]), unflatten=lambda n, c: Named(**dict(zip(n, c, strict=True)))
    )
    model = {"m": Named(weight=np.ones(2), other=[np.zeros(2)])}
    assert names(tree.parameters(model)) == ["m.weight", "m.other.0"]
    path = tree.path("m.weight", model)
    assert path(model) is model["m"].parts["weight"]
    assert not path.writable(model)
    path.set(model, 3.0)
    assert model["m"].parts["weight"] == 3.0
    with pytest.raises(KeyPathError, match="Named has the children weight, other"):
        tree.path("m.bias", model)
    swapped = {"m": Named(other=[1], weight=2)}
    assert tree.map(lambda x, y: y, model, swapped)["m"].parts == {"weight": 2, "other": [1]}
    assert tree.flatten(model)[1] != tree.flatten(swapped)[1]
    with pytest.raises(StructureError, match="^m: expected"):
        tree.map(lambda x, y: y, model, {"m": Named(weight=1, bias=[2])})


@pytest.mark.parametrize(
    "options",
    [{}, {"fields": ("a",), "flatten": id}, {"flatten": id}, {"fields": ("a",), "not_trainable": ("b",)}],
)
def test_register_accepts_one_of_two_forms(options):
    with pytest.raises(TypeError, match="register\\(Dense\\): "):
        tree.register(Dense, **options)


# --- listing ---------------------------------------------------------------------------------------------------------

LISTED = {
    "l": [Dense(np.ones(2), np.ones(2, np.float32)), (1.5, "text")],
    "f": Frozen(np.arange(3)),
    "c": array_api_strict.ones(2, dtype=array_api_strict.float32),
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "l l.0 l.0.weight l.0.bias l.1 l.1.0 l.1.1 f f.weight f.bias c"),
        ({"recursive": False}, "l f c"),
        ({"writable": False}, "l.1.0 l.1.1 f.weight f.bias"),
        ({"writable": True, "recursive": False}, "l f c"),
        ({"to": Dense}, "l.0"),
        ({"to": (Dense, Frozen)}, "l.0 f"),
        ({"to": float}, "l.1.0"),
        ({"to": object}, "l l.0 l.0.weight l.0.bias l.1 l.1.0 l.1.1 f f.weight f.bias c"),
        ({"to": np.ndarray}, "l.0.weight l.0.bias f.weight"),
        ({"to": np.ndarray, "writable": True}, "l.0.weight l.0.bias"),
        ({"to": np.float32}, "l.0.bias"),
        ({"to": np.dtype("float64")}, "l.0.weight"),
        ({"to": (np.float64, str)}, "l.0.weight l.1.1"),
        ({"to": array_api_strict.float32}, "c"),
        ({"to": lambda x: isinstance(x, list | str)}, "l l.1.1"),
        ({"to": type(None)}, "f.bias"),
    ],
)
@pytest.mark.filterwarnings("ignore:You are comparing a array_api_strict dtype")
def test_key_paths_by_type_depth_and_writability(options, expected):
    assert names(tree.key_paths(LISTED, **options)) == expected.split()


def test_a_class_with_a_dtype_attribute_is_a_class_not_a_dtype():
    @dataclasses.dataclass
    class Typed:
        weight: typing.Any
        dtype: typing.Any = "float64"

    assert names(tree.key_paths([Typed(np.ones(2))], to=Typed)) == ["0"]
    assert tree.key_paths([np.array([None])], to=Dense) == []


def test_a_predicate_that_raises_passes_through():
    with pytest.raises(ZeroDivisionError):
        tree.key_paths([1], to=lambda x: x / 0)


# --- map -------------------------------------------------------------------------------------------------------------


def test_map_takes_dict_keys_in_the_order_of_the_first_tree():
    first = {"a": 1, "b": [2, None]}
    assert list(tree.map(lambda *xs: xs, first, {"b": [20, None], "a": 10}).items()) == [
        ("a", (1, 10)),
        ("b", [(2, 20), None]),
    ]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"l": [1, 2, 3]}, {"l": [1, 2]}, "l: expected a list of 3, found a list of 2"),
        ([1], (1,), "the root: expected a list of 1, found a tuple of 1"),
        ([1], [[2]], "0: expected a leaf, found a list of 1"),
        ([[1]], [2], "0: expected a list of 1, found a leaf (int)"),
        ([None], [1], "0: expected None, found a leaf (int)"),
        ([1], [None], "0: expected a leaf, found None"),
        ([{"a": 1}], [{"b": 1}], "0: expected a dict with the keys a, found a dict with the keys b"),
        ([Dense(1)], [Frozen(1)], "0: expected a Dense, found a Frozen"),
        (
            [Dense(1)],
            [type("Dense", (Dense,), {})(1)],
            "0: expected a Dense, found a Dense (another class of that name)",
        ),
        (Dense(1, [2]), Dense(1, 2), "bias: expected a list of 1, found a leaf (int)"),
    ],
)
def test_trees_that_differ_are_told_by_path(first, second, message):
    with raises(StructureError, message):
        tree.map(lambda x, y: x, first, second)


def test_an_error_of_the_function_propagates():
    with pytest.raises(ZeroDivisionError):
        tree.map(lambda x: x / 0, [1])


# --- parameters ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Norm:
    scale: typing.Any
    mean: typing.Any = tree.field(trainable=False, default=None, metadata={"unit": "m"})


def test_a_field_keeps_its_options_and_metadata():
    (mean,) = [field for field in dataclasses.fields(Norm) if field.name == "mean"]
    assert (mean.default, mean.metadata["unit"]) == (None, "m")


def test_parameters_are_floating_and_complex_arrays_that_are_trained():
    shared = np.ones(2)
    model = {
        "f64": shared,
        "f32": np.ones(2, np.float32),
        "f16": np.ones(2, np.float16),
        "c64": np.ones(2, np.complex64),
        "big": np.ones(2, ">f4"),
        "int": np.arange(3),
        "bool": np.ones(2, bool),
        "record": np.zeros(2, [("float", "f4")]),
        "number": 1.5,
        "text": "float32",
        "class": np.float32,
        "dtype": np.dtype("float32"),
        "norm": Norm(np.ones(3), [np.ones(3), {"a": np.ones(3)}]),
        "tied": shared,
        "strict": array_api_strict.ones(2),
        "none": None,
    }
    parameters = tree.parameters(model)
    assert names(parameters) == ["f64", "f32", "f16", "c64", "big", "norm.scale", "strict"]
    assert parameters[tree.path("f64", model)] is shared
    leaves, structure = tree.flatten(model)
    assert names(structure.paths()[i] for i in _core.tree_tied(leaves, structure)[0]) == ["f64", "tied"]
    assert tree.parameters(np.ones(2)).keys() == {KeyPath()}


def test_registered_fields_may_be_not_trainable():
    @tree.register(fields=("weight", "mean"), not_trainable=("mean",))
    class Whitening:
        def __init__(self):
            self.weight, self.mean = np.ones(2), np.zeros(2)

    assert names(tree.parameters(Whitening())) == ["weight"]


def test_zeros_like_makes_zeros_of_parameters_only():
    shared = np.ones((2, 3), np.float32)
    mean = np.ones(2)
    model = [shared, Norm(array_api_strict.ones(2), mean), shared, np.arange(2), "text"]
    zeros = tree.zeros_like(model)
    assert zeros[0] is zeros[2]
    assert (zeros[0].shape, zeros[0].dtype, zeros[0].any()) == ((2, 3), np.float32, False)
    assert isinstance(zeros[1].scale, type(model[1].scale))
    assert not array_api_strict.any(zeros[1].scale != 0)
    assert zeros[1].mean is mean
    assert zeros[3:] == model[3:]
    assert shared.all()


# --- properties of random trees --------------------------------------------------------------------------------------

KEYS = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), st.integers(-(2**63), 2**63 - 1))
TREES = st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda trees: st.one_of(
        st.lists(trees, max_size=4),
        st.lists(trees, max_size=4).map(tuple),
        st.dictionaries(KEYS, trees, max_size=4),
        *(st.builds(cls, trees, trees) for cls in (Dense, Frozen, FrozenSlotted, Pair)),
    ),
    max_leaves=20,
)


@given(TREES)
def test_flatten_and_unflatten_are_inverse(model):
    leaves, structure = tree.flatten(model)
    after = tree.unflatten(structure, leaves)
    assert after == model
    assert tree.flatten(after)[1] == structure
    assert tree.map(lambda x, y: y, model, after) == model
    assert _core.tree_leaves(model, structure) == leaves


@given(TREES)
def test_paths_name_the_leaves_and_read_back(model):
    leaves, structure = tree.flatten(model)
    paths = structure.paths()
    assert len({*paths}) == len(leaves)
    for path, leaf in zip(paths, leaves, strict=True):
        assert path(model) is leaf
        assert tree.path(str(path), model) == path
        assert KeyPath(path) == path
    everything = tree.key_paths(model)
    assert [path for path in everything if path in {*paths}] == [path for path in paths if len(path)]
    assert all(tree.path(str(path), model) == path for path in everything)


@given(TREES, st.data())
def test_setting_one_part_gives_it_back_and_leaves_the_others(model, data):
    paths = tree.flatten(model)[1].paths()
    path = data.draw(st.sampled_from(paths)) if paths else KeyPath()
    others = [(other, other(model)) for other in paths if other != path]
    marker, before = object(), copy.deepcopy(model)
    writable = path.writable(model)
    after = path.set(model, marker)
    assert path(after) is marker
    assert all(other(after) is value for other, value in others)
    if writable:
        assert after is model
    elif after is not model:
        assert model == before


def test_leaves_in_the_order_of_a_structure_and_none_for_another_one() -> None:
    _, structure = tree.flatten({"a": 1.0, "b": [2.0, 3.0]})
    assert _core.tree_leaves_like({"b": [5.0, 6.0], "a": 4.0}, structure) == [4.0, 5.0, 6.0]
    for other in (None, 1.0, {"a": 4.0}, {"a": 4.0, "b": (5.0, 6.0)}, {"a": 4.0, "b": [5.0, None]}):
        assert _core.tree_leaves_like(other, structure) is None
        with pytest.raises(StructureError):
            _core.tree_leaves(other, structure)
