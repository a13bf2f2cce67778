"""Fields: what the page that sizes a service asks, in its own words, and of which flag of `threeloops serve`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field."""

    flag: str
    label: str
    first: str = ""  # what stands in it at first
    like: str = ""  # what could stand in it
    choices: tuple[str, ...] = ()  # what may be chosen, where that is a list; of models and parts the page has it


WHAT = "What is served"
ASKED = "Requests"
LOAD = "Load: a rate, or users at a time"
PROMISES = "Promises, for 99 of 100"
APART, POOLS, DRAFTS, ADAPTERS = "Split over GPUs", "Prompts on GPUs of their own", "Drafts", "LoRA adapters"
MEMORY = "Engine, memory and price"
FORMATS = ("bf16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "awq", "gptq")
TRACES = ("", "azure-conversation", "azure-code", "mooncake")
ENGINES = ("vLLM", "SGLang", "TensorRT-LLM")
FIELDS: dict[str, tuple[Field, ...]] = {
    WHAT: (
        Field(flag="--model", label="Model", first="llama-3.3-70b"),
        Field(flag="--weights", label="Weights", first="fp8", choices=FORMATS),
        Field(flag="--cache", label="Keys and values", first="bf16", choices=("bf16", "fp8")),
        Field(flag="--hardware", label="Hardware", first="h100-sxm5"),
    ),
    ASKED: (
        Field(flag="--prompt", label="Prompt", first="2k", like="mean tokens, like 900 or 2k"),
        Field(flag="--answer", label="Answer", first="500", like="mean tokens"),
        Field(flag="--lengths", label="Lengths of a recorded trace", choices=TRACES),
        Field(flag="--hit", label="Share in a prefix cache", like="0.6 or 60%"),
    ),
    LOAD: (
        Field(flag="--rate", label="Rate", first="50/s", like="50/s or 600/min"),
        Field(flag="--users", label="Users", like="64, each asking again at once"),
        Field(flag="--gpus", label="GPUs", like="8; of a rate the most"),
    ),
    PROMISES: (
        Field(flag="--ttft", label="TTFT", first="500ms", like="500ms"),
        Field(flag="--itl", label="ITL", like="40ms, every gap"),
        Field(flag="--tpot", label="TPOT", first="40ms", like="40ms, the mean gap"),
    ),
    APART: (
        Field(flag="--tp", label="GPUs of a tensor group", like="1, 2, 4 and 8 are tried"),
        Field(flag="--dp", label="Groups with requests of their own", like="8"),
        Field(flag="--ep", label="GPUs with different experts", like="8"),
        Field(flag="--dcp", label="GPUs that share a cache's tokens", like="8"),
        Field(flag="--pp", label="Stages", like="2"),
        Field(flag="--network", label="Network between stages", like="infiniband-ndr or 50GB/s"),
    ),
    POOLS: (
        Field(flag="--prefill-tp", label="GPUs of a group that reads", like="4"),
        Field(flag="--prefill-dp", label="Groups that read and share experts", like="1"),
        Field(flag="--link", label="Link between the pools", like="infiniband-ndr"),
        Field(flag="--bandwidth", label="Bandwidth, in place of a link", like="50GB/s"),
    ),
    DRAFTS: (
        Field(flag="--draft-tokens", label="Drafted tokens", like="3"),
        Field(flag="--acceptance", label="Accepted share", like="0.7"),
        Field(flag="--draft-cost", label="Cost of a draft", like="0.05 of a step"),
    ),
    ADAPTERS: (
        Field(flag="--adapters", label="Adapters", like="8"),
        Field(flag="--adapter-rank", label="Rank", like="16"),
    ),
    MEMORY: (
        Field(flag="--engine", label="Engine", first="vLLM", choices=ENGINES),
        Field(flag="--share", label="Share of the memory", first="0.92", like="0.92"),
        Field(flag="--other", label="Activations, graphs, buffers", first="3GB", like="3GB of each GPU"),
        Field(flag="--watermark", label="Blocks kept free", like="0.05; vLLM alone"),
        Field(flag="--price", label="Price of a GPU for an hour", like="2.50"),
    ),
}
FOLDED = (APART, POOLS, DRAFTS, ADAPTERS, MEMORY)
LABELS = {field.flag: field.label for fields in FIELDS.values() for field in fields}
