"""`threeloops memory`: what training holds on one GPU.

whole       every weight is trained
adapted     adapters beside frozen weights: LoRA, QLoRA, DoRA
verdict     whether the bytes fit
flags       what it is asked
"""
