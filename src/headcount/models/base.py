"""What every kind of model promises: a spec, which is its shape, and a model, which is its weights.

A kind is a final spec class (a frozen, keyword-only dataclass) and a final model class (an Equinox module). `register`
makes the spec class known by its `kind`; everything else of headcount knows the two abstract classes here and no more.
"""

import dataclasses
import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from .._choices import AnsweredAt, Backend, Precision, require_choice
from .._shapes import AnyArray, Key, Target, TokenIds, Tokens, TokenTargets
from ..backends.advance import ModelSizes
from ..errors import InputError, did_you_mean, require, require_count
from .layers import Linear

if TYPE_CHECKING:
    import torch

    from .class_token.removal import HeadRemoval

Arrays = dict[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class HeadElimination:
    """Heads in the order in which their removal changes the answers least, and what each removal did.

    `distances[k]` is the mean squared change of the answers, over their variance, after the first k + 1 removals. The
    last head is never removed.
    """

    order: tuple[int, ...]
    distances: tuple[float, ...]


class AbstractSpec(ABC):
    """The shape of a model: validated at birth, hashable, and part of a cell's identity.

    A subclass is a frozen, keyword-only dataclass with at least the fields `heads`, `rank` (width of queries and keys)
    and `head_dim` (value width of a head), whose values are plain JSON. `__post_init__` raises `InputError` for bad
    ones. Subclasses are final.
    """

    kind: ClassVar[str]
    """The name under which the spec class is registered and stored."""
    standardises: ClassVar[bool] = True
    """Whether the model is trained on tokens and targets of mean 0 and variance 1 rather than in the task's units; may
    depend on the fields."""
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    """The precisions in which it may be trained; may depend on the fields."""
    left_out_at_default: ClassVar[tuple[str, ...]] = ()
    """Fields that `as_dict` leaves out where they have their default value: those that were added after results had
    been stored, whose cells would otherwise be other cells."""
    may_be_zero: ClassVar[tuple[str, ...]] = ("vocabulary",)
    """Counts among the fields that may be 0."""
    in_parts: ClassVar[bool] = False
    """Whether a CPU trains it faster on batches in parts, because a layer keeps more than the caches hold."""
    heads: int
    rank: int
    head_dim: int
    answered_at: AnsweredAt
    """Where the model answers: a field, or a constant of the class."""
    vocabulary: int = 0
    """How many token ids the model looks up in a learned table, a token being one id; 0: tokens are numbers."""
    masks_padding: bool = False
    """Whether the model leaves absent tokens out; see `masks_nan`."""

    def __post_init__(self):
        """Raise `InputError` for a field that is no count, truth value or choice where its declared type is one."""
        for name, kind in _declared_types(type(self)).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal:
                require_choice(name, value, get_args(kind))
            elif kind is bool:
                require(isinstance(value, bool), what=name, given=value, needed="True or False")
            elif kind is int or (kind == int | None and value is not None):
                require_count(name, value, least=0 if name in self.may_be_zero else 1)

    @property
    def masks_nan(self) -> bool:
        """Whether tokens that are all NaN are absent: what they hold, and how many there are, changes nothing."""
        return self.masks_padding

    @property
    def drops(self) -> bool:
        """Whether training sets random numbers to zero (dropout), for which the model needs a key."""
        return False

    @property
    def removes_heads(self) -> bool:
        """Whether a trained model can lose a head and be one of the same spec with fewer heads."""
        return False

    @property
    def pools(self) -> bool:
        """Whether the fused back end pools the model's tokens; see `AbstractModel.answers`."""
        return False

    def step_sizes(self, *, length: int, dim: int, outputs: int) -> ModelSizes | None:
        """Return the sizes by which the fused back end takes whole training steps; None where it cannot."""
        return None

    @abstractmethod
    def init(self, seed: int | None, *, length: int, dim: int, outputs: int) -> "AbstractModel":
        """Draw weights for sequences of `length` tokens of `dim` numbers: a function of the arguments alone.

        Without a seed every array is a `jax.ShapeDtypeStruct`, as `layers.initial_array` gives it.
        """

    def require_length(self, length: int) -> None:  # noqa: B027 - most kinds read any length
        """Raise `InputError` where the spec does not fit sequences of `length` tokens."""

    def parameters(self, *, length: int, dim: int, outputs: int) -> int:
        """Return the number of trained numbers."""
        return sum(array.size for array in jax.tree.leaves(skeleton(self, length, dim, outputs)))

    @abstractmethod
    def flops(self, *, length: int, dim: int, outputs: int) -> int:
        """Count multiplications and additions of the forward pass on one sequence, of matrix products only.

        What is computed once per batch is left out.
        """

    @abstractmethod
    def activations(self, *, length: int, dim: int) -> int:
        """Estimate how many numbers one sequence keeps for its gradient."""

    def with_rank(self, rank: int) -> Self:
        """Return the same spec with another rank, and with it what is tied to the rank."""
        return dataclasses.replace(self, rank=rank)  # pyright: ignore[reportArgumentType] - see the class

    @abstractmethod
    def sizes_of(self, shapes: Shapes) -> dict[str, int]:
        """Read `length`, `dim` and `outputs`, which the spec leaves open, from the shapes of a model's arrays."""

    def padded(self) -> Self:
        """Return the spec that a program is compiled for: itself, or one of more heads that several head counts share.

        It depends on this spec alone and not on others of the sweep, so that a cell's numbers do not depend on them.
        """
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return kind and fields, less those `left_out_at_default`, as JSON; `spec_from_dict` gives the spec back."""
        content = {"kind": self.kind} | dataclasses.asdict(self)  # pyright: ignore[reportArgumentType] - see the class
        defaults = {name: getattr(type(self), name) for name in self.left_out_at_default}
        return {name: value for name, value in content.items() if name not in defaults or value != defaults[name]}


class AbstractModel(eqx.Module):
    """The weights of a model. Arrays are NumPy before and after training, and JAX during it. Subclasses are final."""

    spec: eqx.AbstractVar[AbstractSpec]
    """Static: models of one spec have one tree structure."""

    @abstractmethod
    def __call__(self, tokens: Tokens | TokenIds, *, key: Key | None = None) -> Target | TokenTargets:
        """Return the answer for one sequence: one target, or one per token where the spec is answered at tokens.

        Where the spec looks token ids up, `tokens` may be (length,) ids. Where it takes NaN tokens for absent ones, a
        shorter sequence than the model was trained on is one with absent tokens.

        `key` is given in training, where it draws what is dropped; without one nothing is dropped.
        """

    def answers(
        self,
        tokens: Float[AnyArray, "examples length dim"],
        keys: AnyArray | None = None,
        *,
        backend: Backend = "reference",
    ) -> Float[AnyArray, "examples *places outputs"]:
        """Return the answers to a batch of sequences, each with its key where keys are given.

        `backend` "fused" may only be asked for where its kernels are loaded; a model that has no use for them
        (`spec.pools`) answers as the reference does.
        """
        return jax.vmap(lambda sequence, key: self(sequence, key=key), in_axes=(0, None if keys is None else 0))(
            tokens, keys
        )

    def with_heads(self, heads: int) -> Self:
        """Pad the model with heads that change nothing, or cut it to its first `heads` heads; some are never padded.

        Training keeps added weights at zero, so `with_heads(spec.heads)` undoes padding after training too.
        """
        return self

    def calibrated(self, tokens: Float[AnyArray, "examples length dim"]) -> Self:
        """Return the model with its scales set from some training tokens, before training begins."""
        return self

    def outer_maps(self) -> tuple[Linear, Linear]:
        """Return the first map of the tokens and the last map to the answers, of a kind that standardises."""
        raise NotImplementedError

    def in_raw_units(
        self,
        token_mean: Float[AnyArray, " dim"],
        token_scale: Float[AnyArray, " dim"],
        target_mean: Float[AnyArray, "*places outputs"],
        target_scale: Float[AnyArray, "*places outputs"],
    ) -> Self:
        """Rewrite a model trained on standardised tokens and targets to read and answer in the task's own units."""
        if not self.spec.standardises:
            return self
        last = self.outer_maps()[1].to_raw_targets(target_mean, target_scale)
        model = eqx.tree_at(lambda model: model.outer_maps()[1], self, last)
        return model if self.spec.vocabulary else model.in_raw_tokens(token_mean, token_scale)  # ids have no units

    def in_raw_tokens(self, mean: Float[AnyArray, " dim"], scale: Float[AnyArray, " dim"]) -> Self:
        """Return the model rewritten to read tokens in the task's own units."""
        first = self.outer_maps()[0].of_raw_tokens(mean, scale)
        return eqx.tree_at(lambda model: model.outer_maps()[0], self, first)

    def head_removal(self, tokens: Float[AnyArray, "examples length dim"]) -> "HeadRemoval":
        """Prepare the model to lose heads, judged on some training tokens; see `spec.removes_heads`."""
        raise InputError(f"models of {self.spec} cannot lose a head and stay of their kind.")

    def attention_weights(self, tokens: Tokens | TokenIds) -> tuple[Float[AnyArray, "heads tokens"], ...]:
        """Return how much of every token each head reads for the answer, layer by layer; of an absent token 0.

        What answers is the class token, the query, or where every token answers the first. A head's weights sum to 1,
        less what the class token reads of itself. A sequence that is filled up has weights for what was added, too.

        Raises `InputError` for a kind that does not say what its heads read.
        """
        raise InputError(f"models of kind {self.spec.kind} do not say what their heads read.")

    def without_head(self, layer: int, head: int) -> Self:
        """Set the output of one head to zero and keep all else; see `attention_weights` for the error.

        Both count from 0, in the order of `attention_weights`.
        """
        raise InputError(f"models of kind {self.spec.kind} do not say what their heads read.")

    def sizes(self) -> dict[str, int]:
        """Return `length`, `dim` and `outputs`; without positions, where any length is read, the least `length`."""
        return self.spec.sizes_of({name: array.shape for name, array in named_arrays(self).items()})

    def read_tokens(self, tokens: Any) -> Any:
        """Return one sequence as the model computes with it, of the length of its `position_table` if it has one.

        Token ids may be given as (length,), and where NaN tokens are absent a shorter sequence is filled up with them:
        in front where the last token is the query, else at the end.

        Raises `InputError` for any other shape, for ids that the spec does not have, and for NaN ids unless they are
        absent tokens.
        """
        spec, sizes = self.spec, self.sizes()
        dim, length = sizes["dim"], None if getattr(self, "position_table", None) is None else sizes["length"]
        if spec.vocabulary:
            tokens = _read_ids(tokens, spec)
        shape = np.shape(tokens)
        missing = length - shape[0] if spec.masks_nan and length is not None and shape else 0
        fits = len(shape) == 2 and shape[1] == dim and (missing > 0 or length in (None, shape[0]))
        wanted = f"({'length' if length is None else length}, {dim})"
        require(
            fits,
            f"tokens must have shape {wanted}, one sequence, got {shape}; for a batch use jax.vmap(model).",
            what="tokens",
            given=shape,
            needed=f"of shape {wanted}",
        )
        if missing <= 0:
            return tokens
        tokens = jnp.asarray(tokens)
        absent = jnp.full((missing, dim), jnp.nan, tokens.dtype)
        return jnp.concatenate([absent, tokens] if spec.answered_at == "query" else [tokens, absent])

    def to_arrays(self) -> Arrays:
        """Return every array of the model by its path, such as `attention.0.query`."""
        return {name: np.asarray(array) for name, array in named_arrays(self).items()}

    def to_torch(self) -> "torch.nn.Module":
        """Return the model as a plain PyTorch module in evaluation mode, with the parameter names of `to_arrays`.

        It takes float32 tokens of shape (length, dim) or (batch, length, dim) and answers as the model does, to
        rounding. Nothing is dropped. Raises `InputError` where PyTorch is not installed, or the kind has no module.
        """
        try:
            import torch  # noqa: F401
        except ImportError as error:
            raise InputError("to_torch needs PyTorch: pip install 'headcount[torch]' installs it.") from error
        from .to_torch import torch_module

        return torch_module(self)


@functools.cache
def _declared_types(spec: type[AbstractSpec]) -> dict[str, Any]:
    """Return the types of a spec's fields."""
    hints = get_type_hints(spec)
    return {field.name: hints[field.name] for field in dataclasses.fields(spec)}  # pyright: ignore[reportArgumentType]


KINDS: dict[str, type[AbstractSpec]] = {}
"""The registered spec classes by kind."""
SpecClass = TypeVar("SpecClass", bound=type[AbstractSpec])


def register(spec_class: SpecClass) -> SpecClass:
    """Make a spec class known by its `kind`, so that stored specs of that kind can be read; usable as a decorator.

    Raises `InputError` where another class has that kind.
    """
    known = KINDS.setdefault(spec_class.kind, spec_class)
    same = (known.__module__, known.__qualname__) == (spec_class.__module__, spec_class.__qualname__)
    require(same, f"kind {spec_class.kind} is taken by {known.__qualname__}; give {spec_class.__qualname__} another.")
    KINDS[spec_class.kind] = spec_class  # a module that is loaded again replaces its class
    return spec_class


def spec_from_dict(content: dict[str, Any]) -> AbstractSpec:
    """Return the spec whose `as_dict()` is `content`. Raises `InputError` for an unknown kind, field or value."""
    kind = content.get("kind")
    if kind not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise InputError(f'the model kind must be one of {known}, got "{kind}".{did_you_mean(str(kind), KINDS)}')
    fields = {name: value for name, value in content.items() if name != "kind"}
    try:
        return KINDS[kind](**fields)
    except TypeError as error:  # a field that is missing or unknown
        raise InputError(f"{fields} is no spec of kind {kind}: {error}.") from error


@functools.cache
def skeleton(spec: AbstractSpec, length: int, dim: int, outputs: int) -> AbstractModel:
    """Return the model of that spec for these sizes, with the shape of every array in place of the array."""
    return spec.init(None, length=length, dim=dim, outputs=outputs)


def named_arrays(model: AbstractModel) -> dict[str, Any]:
    """Return every array of the model by its path, as it is: NumPy's, JAX's, or only its shape."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(model)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def from_arrays(spec: AbstractSpec, arrays: Arrays) -> AbstractModel:
    """Return the model of that spec with these arrays; `from_arrays(spec, model.to_arrays())` is `model`.

    Raises `InputError` where an array is missing, surplus or of another shape than the spec says.
    """
    try:
        sizes = spec.sizes_of({name: array.shape for name, array in arrays.items()})
    except LookupError as error:
        raise InputError(f"{', '.join(sorted(arrays))} are not the arrays of {spec}: {error}.") from error
    for name, size in sizes.items():
        require_count(f"the {name} of the arrays", size)
    model = skeleton(spec, **sizes)
    needed = named_arrays(model)
    missing, surplus = sorted(needed.keys() - arrays.keys()), sorted(arrays.keys() - needed.keys())
    require(not missing, f"missing arrays for {spec}: {', '.join(missing)}.")
    require(not surplus, f"arrays that {spec} does not have: {', '.join(surplus)}.")
    for name, leaf in needed.items():
        shape = arrays[name].shape
        require(shape == leaf.shape, f"{name} has shape {shape}; {spec} needs {leaf.shape}.")
    return jax.tree.unflatten(jax.tree.structure(model), [arrays[name] for name in needed])


def _read_ids(tokens: Any, spec: AbstractSpec) -> Any:
    try:
        ids = np.asarray(tokens, float)
    except jax.errors.TracerArrayConversionError:  # inside a program there is nothing to check yet
        ids = np.zeros(0)
    known = (ids >= 0) & (ids < spec.vocabulary) & (ids == np.rint(ids))
    absent = np.isnan(ids) & spec.masks_nan
    strange = ids[~(known | absent)]
    needed = f"token ids, whole numbers from 0 to {spec.vocabulary - 1}"
    require(not strange.size, what="tokens", given=strange.flat[0].item() if strange.size else None, needed=needed)
    tokens = jnp.asarray(tokens)
    tokens = tokens if jnp.issubdtype(tokens.dtype, jnp.floating) else tokens.astype(jnp.float32)
    return tokens[:, None] if tokens.ndim == 1 else tokens


def absent_tokens(tokens: Tokens) -> Bool[AnyArray, " length"]:
    """Return which tokens are absent: all NaN."""
    return jnp.all(jnp.isnan(tokens), axis=-1)
