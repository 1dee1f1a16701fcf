"""Small series of a sweep built by hand, for tests of what reads them."""

from core.analysis.ledger import (
    RECOMPILE_LIMIT,
    Attempt,
    Call,
    DimName,
    GuardMiss,
    Jit,
    PointFacts,
    PointKernel,
    Products,
    SeriesFacts,
)
from core.analysis.spread import Spread
from core.roles import Role

ROLES = (
    Role("gate", "gate", True, "A matrix product."),
    Role("up", "up", True, "A matrix product."),
    Role("activation", "activation", False, "What fusing changes."),
    Role("down", "down", True, "A matrix product."),
)
X_DIMS = (DimName("x", 0, "batch"), DimName("x", 1, "seq"), DimName("x", 2, "hidden"))
DIMS = (
    *X_DIMS,
    DimName("self._modules['gate']._parameters['weight']", 0, "intermediate"),
    DimName("self._modules['up']._parameters['weight']", 0, "intermediate"),
)
BATCH_8_NOT_4 = GuardMiss("0/0", "tensor 'x' size mismatch at index 0. expected 4, actual 8")


def about(us, *, by=0.005, n=10):
    """n samples around a median, `by` of it to each side."""
    return Spread(n=n, median=us, min=us * (1 - by), max=us * (1 + by), p25=us * (1 - by / 2), p75=us * (1 + by / 2))


def compiled(entry="0/0", **changes):
    """A forward compile that went well, in 1.5 s."""
    stages = {
        "dynamo": 0.25,
        "aot_autograd": 0.25,
        "inductor": 0.75,
        "kernel_compile": 0.25,
        "backward": None,
        "total": 1.5,
    }
    return Attempt(**({"entry": entry, "backward": False, "ok": True, "guard_count": 12, "stages_s": stages} | changes))


def limited(entry="0/8", **changes):
    """A compile that the recompile limit turned off."""
    failed = "Dynamo recompile limit exceeded"
    return Attempt(
        **({"entry": entry, "backward": False, "ok": False, "failed": failed, "limit": RECOMPILE_LIMIT} | changes)
    )


def call(*attempts, served=None, first_s=None, **changes):
    """A call that compiled these; it was served by the last that went well, if `served` does not say."""
    ok = tuple(one.entry for one in attempts if one.ok and not one.backward)[-1:]
    found = {"first_call_s": first_s if first_s is not None else 2.0 if attempts else 0.001, "attempts": attempts}
    return Call(**(found | {"served_by": ok if served is None else served, "graph_breaks": ()} | changes))


def jit(seconds=0.17, **constexprs):
    """A JIT compile of Liger's kernel."""
    return Jit("_geglu_tanh_forward_kernel", {name: str(value) for name, value in constexprs.items()}, seconds)


def products(us, *kernels):
    """Matrix products that take `us` a step, by kernels of these names (none: unknown)."""
    return Products(tuple((f"role {at}", name) for at, name in enumerate(kernels)), (("gate", us),))


def kernel(name, role, family="gemm", us=50.0):
    """One kernel of a point, launched once a step."""
    return PointKernel(name, role, family, "(1, 1, 1)", "(128, 1, 1)", 1.0, about(us))


def point(series, index, values, call=None, *, step=None, roles=None, round=0, **changes):
    """A sound point on a GPU at 1,980 MHz: `step` in µs, `roles` the µs of each role (their sum is the kernel time)."""
    values = values if isinstance(values, tuple) else (values,)
    found = {
        "run_id": f"{series}-{index}" if not round else f"{series}-{index}-{round}",
        "series": series,
        "index": index,
        "round": round,
        "order": index * 10 + round,
        "values": values,
        "count": 1,
        "on_gpu": True,
        "device": "NVIDIA H200",
        "call": call,
        "kernel_time_us": about(sum(roles.values())) if roles else None,
        "role_us": {name: about(us) for name, us in (roles or {}).items()},
        "step_us": about(step) if step else None,
        "clocks_mhz": (1980, 1980),
        "dims": DIMS,
    }
    return PointFacts(**(found | changes))


def of(name, *points, **changes):
    """A series of that backend."""
    titles = {
        "eager": "Eager",
        "compile": "torch.compile",
        "liger": "Liger kernels",
        "compile_dynamic": "compile, dynamic=True",
        "compile_static": "compile, dynamic=False",
    }
    compiles = name not in ("eager", "liger")
    dynamic = {"compile_dynamic": True, "compile_static": False}.get(name)
    found = {
        "title": titles[name],
        "compiles": compiles,
        "fuses": name != "eager",
        "dynamic": dynamic,
        "points": points,
    }
    return SeriesFacts(**({"name": name} | found | changes))
