"""Sublayers: the operations of an attention block and of a feed-forward block, dense or mixture of experts, as named
work.

Each function lists the kernels of one block, in order, for one forward pass (a ForwardStep). transformer.py puts them
together.

>>> step = ForwardStep(
...     phase="prefill", batch=1, sequence=512, causal="full", fused_attention=True, logits="all", bytes_per_element=2
... )
>>> [op.name for op in mlp_ops(DenseMlp(intermediate=11008, gated=True, activation="silu"), hidden=4096, step=step)]
['gate_up_projection', 'gated_activation', 'down_projection']
"""

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, MoeMlp
from threeloops.models.forward_step import LATENT, MATRIX, VECTOR, ForwardStep, Op
from threeloops.operations import kernels
from threeloops.operations.expert_layers import ROUTING, experts_touched
from threeloops.operations.roofline import Work


def attention_ops(attention: Attention, *, hidden: int, rotary: bool, step: ForwardStep) -> tuple[Op, ...]:
    """Projections, rotary positions, attention and output projection; Q, K and V come from one product, which reads
    its input once.

    Assumes:  keys and values are written where attention will read them (no separate copy into the cache); a layer
              that owns no cache projects queries only; rotary: 2 multiplications and 1 addition per element of Q and
              K, sines and cosines not moved; sinks not counted
    """
    turned = attention.query_dim + (attention.kv_dim if attention.owns_cache else 0)
    projected = (1 + attention.gated) * attention.query_dim + attention.projected_kv_dim
    ops = [_gemm("qkv_projection", step, rows=step.tokens, n=projected, k=hidden, bias=attention.qkv_bias)]
    if attention.qk_norm:
        heads = (attention.num_heads, attention.num_kv_heads) if attention.owns_cache else (attention.num_heads,)
        works = [
            kernels.rmsnorm(rows=step.tokens * num, width=attention.head_dim, bytes_per_element=step.bytes_per_element)
            for num in heads
        ]
        ops.append(Op(name="qk_norm", unit=VECTOR, work=sum(works[1:], start=works[0])))
    if rotary:
        ops.append(_elementwise("rotary", step, elements=step.tokens * turned, flops=3, inputs=1))
    ops += _attention_core(
        step,
        num_heads=attention.num_heads,
        num_kv_heads=attention.num_kv_heads,
        head_dim=attention.head_dim,
        window=attention.window,
    )
    if attention.gated:
        gate = kernels.ACTIVATION_FLOPS["silu"]  # a sigmoid and a product, as silu is
        ops.append(_elementwise("output_gate", step, elements=step.tokens * attention.query_dim, flops=gate, inputs=2))
    return (
        *ops,
        _gemm("output_projection", step, rows=step.tokens, n=hidden, k=attention.query_dim, bias=attention.output_bias),
    )


def latent_attention_ops(attention: LatentAttention, *, hidden: int, step: ForwardStep) -> tuple[Op, ...]:
    """Multi-head latent attention, with keys and values expanded from the latent vectors, or the expansion absorbed
    into queries and outputs.

    expanded: keys and values of every head are rebuilt for the whole context, then ordinary attention (the cheaper
    way in prefill). absorbed: queries move into the latent space, where all heads attend to the cached latents
    themselves (the cheaper way in decode).

    Raises:   ValueError if step.latent is not given, or if an indexer chooses what is read
    Source:   DeepSeek-AI, DeepSeek-V2, 2024, arXiv:2405.04434, section 2.1 and appendix C
    """
    if step.latent is None:
        raise ValueError(
            f"latent=None must be one of {', '.join(LATENT)} for a layer with latent attention; try expanded for"
            " prefill, absorbed for decode"
        )
    attention.refuse_indexer()
    rows, a = step.tokens, attention
    latent = a.kv_rank + a.rope_head_dim
    query_dim = a.num_heads * a.head_dim
    ops = [_gemm("latent_down_projection", step, rows=rows, n=latent + (a.q_rank or 0), k=hidden, bias=a.bias)]
    norms = [
        kernels.rmsnorm(rows=rows, width=rank, bytes_per_element=step.bytes_per_element)
        for rank in (a.kv_rank, a.q_rank)
        if rank
    ]
    ops.append(Op(name="latent_norm", unit=VECTOR, work=sum(norms[1:], start=norms[0])))
    ops.append(
        _gemm(
            "query_up_projection" if a.q_rank else "query_projection",
            step,
            rows=rows,
            n=query_dim,
            k=a.q_rank or hidden,
        )
    )
    ops.append(_elementwise("rotary", step, elements=rows * (a.num_heads + 1) * a.rope_head_dim, flops=3, inputs=1))
    if step.latent == "expanded":
        ops.append(
            _gemm(
                "kv_up_projection",
                step,
                rows=step.batch * step.sequence,
                n=a.num_heads * (a.nope_head_dim + a.value_head_dim),
                k=a.kv_rank,
            )
        )
        ops += _attention_core(
            step, num_heads=a.num_heads, num_kv_heads=a.num_heads, head_dim=a.head_dim, value_head_dim=a.value_head_dim
        )
    else:
        ops.append(_gemm("query_absorption", step, rows=rows, n=a.kv_rank, k=a.nope_head_dim, batch=a.num_heads))
        ops += _attention_core(
            step, num_heads=a.num_heads, num_kv_heads=1, head_dim=latent, value_head_dim=a.kv_rank, values_in_keys=True
        )
        ops.append(_gemm("value_absorption", step, rows=rows, n=a.value_head_dim, k=a.kv_rank, batch=a.num_heads))
    return (*ops, _gemm("output_projection", step, rows=rows, n=hidden, k=a.num_heads * a.value_head_dim, bias=a.bias))


def mlp_ops(mlp: DenseMlp, *, hidden: int, step: ForwardStep) -> tuple[Op, ...]:
    """A dense feed-forward block; gate and up come from one product."""
    up = "gate_up_projection" if mlp.gated else "up_projection"
    return (
        _gemm(up, step, rows=step.tokens, n=(mlp.num_matrices - 1) * mlp.intermediate, k=hidden, bias=mlp.bias),
        _activation(mlp, step, rows=step.tokens, name="gated_activation" if mlp.gated else "activation"),
        _gemm("down_projection", step, rows=step.tokens, n=hidden, k=mlp.intermediate, bias=mlp.bias),
    )


def moe_ops(moe: MoeMlp, *, hidden: int, step: ForwardStep) -> tuple[Op, ...]:
    """A mixture of experts: route, gather each expert's tokens, multiply, add up the results with their weights;
    shared experts beside.

    Assumes:  no expert has a capacity limit, no token is dropped; choosing the top k costs no FLOPs; gathered tokens
              are copied, not indexed
    Raises:   ValueError if step.routing is not given
    Source:   Fedus et al., Switch Transformers, 2021, arXiv:2101.03961; Dai et al., DeepSeekMoE, 2024,
              arXiv:2401.06066 (shared experts)
    """
    if step.routing is None:
        raise ValueError(
            f"routing=None must be one of {', '.join(ROUTING)} for a layer with experts; try routing='uniform'"
        )
    tokens, routed, expert = step.tokens, step.tokens * moe.top_k, moe.expert
    touched = experts_touched(num_experts=moe.num_experts, top_k=moe.top_k, tokens=tokens, routing=step.routing)
    width = moe.latent or hidden
    router = kernels.softmax(rows=tokens, width=moe.num_experts, bytes_per_element=step.bytes_per_element)
    ops = [
        _gemm("router", step, rows=tokens, n=moe.num_experts, k=hidden, bias=moe.router_bias),
        Op(name="router_softmax", unit=VECTOR, work=router),
        *((_gemm("latent_down_projection", step, rows=tokens, n=width, k=hidden),) if moe.latent else ()),
        Op(
            name="expert_gather",
            unit=VECTOR,
            work=Work(flops=0, moved_bytes=(tokens + routed) * width * step.bytes_per_element),
        ),
        _expert_gemm(
            "expert_up",
            step,
            moe,
            rows=routed,
            n=(expert.num_matrices - 1) * expert.intermediate,
            k=width,
            touched=touched,
        ),
        _activation(expert, step, rows=routed, name="expert_activation"),
        _expert_gemm("expert_down", step, moe, rows=routed, n=width, k=expert.intermediate, touched=touched),
        # Per output element: top_k multiplications by a routing weight, top_k - 1 additions.
        Op(
            name="expert_combine",
            unit=VECTOR,
            work=Work(
                flops=(2 * moe.top_k - 1) * tokens * width,
                moved_bytes=(routed * (width + 1) + tokens * width) * step.bytes_per_element,
            ),
        ),
        *((_gemm("latent_up_projection", step, rows=tokens, n=hidden, k=width),) if moe.latent else ()),
    ]
    if moe.shared:
        ops += [
            Op(name=f"shared_{op.name}", unit=op.unit, work=op.work)
            for op in mlp_ops(moe.shared, hidden=hidden, step=step)
        ]
        if moe.shared_gate:
            ops.append(_gemm("shared_gate", step, rows=tokens, n=1, k=hidden))
        # The gate, where there is one, multiplies in the same pass as the addition.
        ops.append(
            _elementwise("shared_add", step, elements=tokens * hidden, flops=2 if moe.shared_gate else 1, inputs=2)
        )
    return tuple(ops)


def _gemm(name: str, step: ForwardStep, *, rows: int, n: int, k: int, bias: bool = False, batch: int = 1) -> Op:
    """A product of `rows` activations with a weight matrix [k, n]."""
    work = kernels.gemm(
        m=rows,
        n=n,
        k=k,
        bytes_per_element=step.bytes_per_element,
        weight_bytes_per_element=step.weight_bytes_per_element,
        bias=bias,
        batch=batch,
    )
    return Op(name=name, unit=MATRIX, work=work)


def _expert_gemm(name: str, step: ForwardStep, moe: MoeMlp, *, rows: int, n: int, k: int, touched: float) -> Op:
    """The products of all experts in one launch: `rows` activations in all, the weights of the touched experts."""
    weight_bytes = step.bytes_per_element if step.weight_bytes_per_element is None else step.weight_bytes_per_element
    weights = touched * (k * n + n * moe.expert.bias) * weight_bytes
    work = Work(
        flops=2 * rows * n * k,
        moved_bytes=rows * (k + n) * step.bytes_per_element + weights,
        conventions=(f"routing={step.routing}",),
    )
    return Op(name=name, unit=MATRIX, work=work)


def _elementwise(name: str, step: ForwardStep, *, elements: int, flops: float, inputs: int) -> Op:
    work = kernels.elementwise(
        elements=elements, flops_per_element=flops, inputs=inputs, bytes_per_element=step.bytes_per_element
    )
    return Op(name=name, unit=VECTOR, work=work)


def _activation(mlp: DenseMlp, step: ForwardStep, *, rows: int, name: str) -> Op:
    """The activation function; when gated, its product with the up projection in the same pass."""
    checks.one_of(kernels.ACTIVATION_FLOPS, activation=mlp.activation)
    flops = kernels.ACTIVATION_FLOPS[mlp.activation] + mlp.gated
    return _elementwise(name, step, elements=rows * mlp.intermediate, flops=flops, inputs=1 + mlp.gated)


def _attention_core(
    step: ForwardStep,
    *,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    value_head_dim: int | None = None,
    window: int | None = None,
    values_in_keys: bool = False,
) -> list[Op]:
    """Attention as one kernel, or as three."""
    if step.fused_attention:
        fused = kernels.attention(
            batch=step.batch,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            value_head_dim=value_head_dim,
            query_tokens=step.query_tokens,
            context_tokens=step.sequence,
            window=window,
            causal=step.causal,
            fused=True,
            values_in_keys=values_in_keys,
            bytes_per_element=step.bytes_per_element,
            kv_bytes_per_element=step.kv_bytes_per_element,
        )
        return [Op(name="attention", unit=MATRIX, work=fused)]
    parts = kernels.unfused_attention(
        batch=step.batch,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        value_head_dim=value_head_dim,
        query_tokens=step.query_tokens,
        context_tokens=step.sequence,
        window=window,
        causal=step.causal,
        bytes_per_element=step.bytes_per_element,
        kv_bytes_per_element=step.kv_bytes_per_element,
    )
    return [
        Op(name="attention_scores", unit=MATRIX, work=parts.scores),
        Op(name="attention_softmax", unit=VECTOR, work=parts.softmax),
        Op(name="attention_values", unit=MATRIX, work=parts.values),
    ]
