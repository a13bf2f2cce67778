"""Parallelism: layers cut over ranks, pipelines, experts, long sequences, and the layout of all of them.

who has what    layouts, layout_rules (what is legal), placement, rank_layers
one kind        pipelines, tensor_parallel, context_parallel, expert_load, partial_recompute
seconds         step_time, layout_step (term by term), group_traffic, product_rates
by measured     software, expected_passes, expert_biases, expected_step, recorded_step
kernels
limits          cluster_limits: closed forms
the search      planner, alternatives, layout_reasons (in words)
what others ran published_layouts, published_steps
"""
