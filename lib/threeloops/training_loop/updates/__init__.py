"""Updates: optimisers, accumulation, loss scales, adapters, rollouts, and the stack of repairs of one step."""
