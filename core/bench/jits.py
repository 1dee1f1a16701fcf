"""What Triton's JIT compiles for hand-written kernels: each compile with its constexpr arguments and seconds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from core.analysis.ledger import Jit


class JitWatch:
    """The compiles seen so far, in order; `taken` hands over those since the last time. None without Triton's hooks."""

    def __init__(self) -> None:
        self.functions: dict[int, Any] = {}
        self._seen: list[Jit] | None = None
        self._since: dict[Any, float] = {}

    def taken(self) -> tuple[Jit, ...] | None:
        """The compiles since the last call of this, None where Triton does not tell."""
        if self._seen is None:
            return None
        found, self._seen = tuple(self._seen), []
        return found

    def forget(self) -> None:
        """Lets every kernel seen so far compile again, as in a new process."""
        for function in self.functions.values():
            getattr(function, "device_caches", {}).clear()

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Watches for as long as the context is open."""
        runtime = _runtime_knobs()
        if runtime is None:
            yield
            return
        self._seen = []
        kept = runtime.jit_cache_hook, runtime.jit_post_compile_hook
        runtime.jit_cache_hook, runtime.jit_post_compile_hook = self._begins, self._ended
        try:
            yield
        finally:
            runtime.jit_cache_hook, runtime.jit_post_compile_hook = kept

    def _begins(self, *, key: Any, **_: Any) -> bool:
        self._since[str(key)] = time.perf_counter()
        return False  # True would tell Triton not to compile

    def _ended(self, *, key: Any, fn: Any, compile: dict[str, Any], **_: Any) -> None:  # Triton's own name
        start = self._since.pop(str(key), None)
        function = getattr(fn, "jit_function", None)
        if function is not None:
            self.functions[id(function)] = function
        assert self._seen is not None
        constants = _named(compile.get("constants", {}), function)
        seconds = None if start is None else round(time.perf_counter() - start, 4)
        self._seen.append(Jit(str(getattr(fn, "name", fn)), constants, seconds))


def _named(constants: Any, function: Any) -> dict[str, str]:
    """Constexpr arguments by name: Triton gives them by name, or by their position as (4,)."""
    names = list(getattr(function, "arg_names", ()))
    found = {}
    for key, value in dict(constants).items():
        at = key[0] if isinstance(key, tuple) and key else key
        found[names[at] if isinstance(at, int) and at < len(names) else str(at)] = str(value)
    return found


def _runtime_knobs() -> Any:
    try:
        from triton import knobs
    except ImportError:  # no Triton on this machine: no kernels of its either
        return None
    runtime = getattr(knobs, "runtime", None)
    return runtime if hasattr(runtime, "jit_cache_hook") and hasattr(runtime, "jit_post_compile_hook") else None
