"""Models: what a network is made of, the known ones and those read from a config; its parameters and its FLOPs.

the language    architecture (a model as a list of layers), layers/ (kinds that are counted without FLOPs)
known ones      catalogue
parameters      parameters, parameter_buckets
FLOPs, bytes    forward_step, sublayers, transformer (operation by operation), model_flops, utilisation
other networks  recurrent_layers, recurrent_ops, encoders, convnets
from a config   hf_config; hf_fields, hf_defaults, hf_layers (what readers share); hf_families, hf_dense_families,
                hf_expert_families, hf_hybrid_families, hf_encoders, convnet_config, readers/ (one reader per family);
                hf_not_read (known by name); files/ (what lies on a disk)
recorded_work   the kernels of every recorded case
"""
