"""GGUF recipes: which block format llama.cpp gives a matrix, by the name of the file and the matrix's place.

A name like Q3_K_M is a recipe: a format for most matrices, and exceptions for those that lose most (value projections,
the matrices back down, the head), often in the first layers only.

>>> recipe_format("attn_v", file_type="Q3_K_M", place=0, num_layers=32, group_size=4, num_experts=1, stacked=False)
'Q5_K'
>>> recipe_format("attn_q", file_type="Q3_K_M", place=0, num_layers=32, group_size=4, num_experts=1, stacked=False)
'Q3_K'

Source: llama.cpp, src/llama-quant.cpp at commit 007dbbf3 (llama_tensor_get_type_impl)
"""

# What most matrices of a file are kept in.
FILE_TYPES = {
    "IQ1_S": "IQ1_S",
    "IQ1_M": "IQ1_M",
    "IQ2_XXS": "IQ2_XXS",
    "IQ2_XS": "IQ2_XS",
    "IQ2_S": "IQ2_XS",
    "IQ2_M": "IQ2_S",
    "IQ3_XXS": "IQ3_XXS",
    "IQ3_XS": "IQ3_S",
    "IQ3_S": "IQ3_S",
    "IQ3_M": "IQ3_S",
    "IQ4_XS": "IQ4_XS",
    "IQ4_NL": "IQ4_NL",
    "Q2_K_S": "Q2_K",
    "Q2_K": "Q2_K",
    "Q3_K_S": "Q3_K",
    "Q3_K_M": "Q3_K",
    "Q3_K_L": "Q3_K",
    "Q4_0": "Q4_0",
    "Q4_K_S": "Q4_K",
    "Q4_K_M": "Q4_K",
    "Q5_0": "Q5_0",
    "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K",
    "Q6_K": "Q6_K",
    "Q8_0": "Q8_0",
    "MXFP4_MOE": "MXFP4",  # the experts; everything else in Q8_0
}
# Where a super-block does not divide a row.
FALLBACK = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"} | {
    name: "IQ4_NL" for name in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS")
}
SMALLEST = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")  # they have a recipe of their own
NEVER_WITHOUT_IMPORTANCES = (*SMALLEST, "IQ3_XXS", "IQ3_XS", "Q2_K_S")
_SUPER_BLOCK = 256
MIXTRAL = 8  # experts: what is small beside them is kept wide

_TABLE = dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS"), "Q2_K") | dict.fromkeys(
    ("IQ2_S", "IQ2_M", "IQ3_XXS"), "IQ3_S"
)
_WIDER = dict.fromkeys(("IQ2_S", "IQ2_M"), "IQ3_S")  # among the smallest; the others' wider format is Q2_K
# Value projections that at least four query heads share are small.
_SHARED_VALUES = dict.fromkeys(("Q2_K", "Q2_K_S", "IQ3_XXS", "IQ3_XS", "IQ3_S"), "Q4_K") | dict.fromkeys(
    ("IQ4_NL", "IQ4_XS"), "Q5_K"
)
_VALUES = {"Q2_K": "Q3_K", "IQ3_M": "Q4_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}
_DOWN = {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}
_DOWN_EARLY = {"Q2_K_S": "Q4_K", "IQ3_M": "Q4_K"} | dict.fromkeys(("IQ4_NL", "IQ4_XS", "Q4_K_S"), "Q5_K")
_OUTPUT = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}
_NOT_WITH_EXPERTS = ("Q2_K_S", "Q3_K_L", "Q4_0", "Q5_0", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0")
_QUERIES_AND_KEYS = {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}


def table_format(role: str, *, file_type: str, hidden: int) -> str:
    """The format of the table of tokens ("token_embd"), or of the head ("output"), whose rows are `hidden` wide.

    >>> (
    ...     table_format("token_embd", file_type="IQ2_M", hidden=4096),
    ...     table_format("output", file_type="Q4_0", hidden=4096),
    ... )
    ('IQ3_S', 'Q6_K')
    """
    base = FILE_TYPES[file_type]
    if file_type == "MXFP4_MOE":
        return "Q8_0" if role == "token_embd" or hidden % _SUPER_BLOCK else "Q6_K"
    if role == "token_embd":
        return _TABLE.get(file_type, base)
    if file_type in (*SMALLEST, "IQ3_XXS"):
        return "Q5_K"
    return base if base == "Q8_0" else "Q6_K"


def recipe_format(
    role: str, *, file_type: str, place: int, num_layers: int, group_size: float, num_experts: int, stacked: bool
) -> str:
    """The format of one matrix of a layer, before a row that no super-block divides changes it.

    Units:    role: attn_q, attn_k, attn_v, attn_output, ffn_up (with the gate), ffn_down, or attn_other of latents;
              place of the layer, from 0;
              stacked: one matrix for all experts
    Assumes:  no importance matrix, but for the files that llama.cpp refuses to make without one; 80 layers with shared
              key and value heads count as its "70B", eight experts as Mixtral
    """
    if file_type in SMALLEST:
        return _smallest(
            role,
            file_type=file_type,
            place=place,
            num_layers=num_layers,
            shared=group_size >= 4 or num_experts >= 4,
            num_experts=num_experts,
        )
    base = FILE_TYPES[file_type]
    if file_type == "MXFP4_MOE":
        return base if stacked else "Q8_0"
    if num_experts == MIXTRAL and role in ("attn_k", "attn_v"):
        return "Q8_0"
    if role == "attn_v":
        form = _values(file_type=file_type, place=place, num_layers=num_layers, group_size=group_size)
        large = num_layers == 80 and group_size > 1
        return "Q5_K" if large and form in ("Q3_K", "Q4_K") else form
    if role in ("attn_q", "attn_k"):
        return _QUERIES_AND_KEYS.get(file_type, base)
    if role == "attn_output":
        if num_experts == MIXTRAL:
            return base if file_type in _NOT_WITH_EXPERTS else "Q5_K"
        return _OUTPUT.get(file_type, base)
    if role == "ffn_down":
        return _down(file_type=file_type, place=place, num_layers=num_layers, num_experts=num_experts)
    if role == "attn_other":
        return base
    middle = num_layers // 8 <= place < 7 * num_layers // 8
    return "IQ3_XXS" if file_type == "IQ3_XS" and middle else base


def _smallest(role: str, *, file_type: str, place: int, num_layers: int, shared: bool, num_experts: int) -> str:
    base, wider = FILE_TYPES[file_type], _WIDER.get(file_type, "Q2_K")
    if role == "attn_v":
        return "Q4_K" if shared else wider
    if num_experts == MIXTRAL and role == "attn_k":
        return "Q4_K"
    if role == "ffn_down" and place < num_layers // 8:
        return wider
    if role == "attn_output":
        if num_experts == MIXTRAL:
            return "Q5_K"
        return "IQ2_XXS" if file_type.startswith("IQ1") else _WIDER.get(file_type, base)
    return base


def _values(*, file_type: str, place: int, num_layers: int, group_size: float) -> str:
    if group_size >= 4 and file_type in _SHARED_VALUES:
        return _SHARED_VALUES[file_type]
    if file_type == "Q3_K_M" and place < 2:
        return "Q5_K"
    if file_type in ("Q4_K_M", "Q5_K_M") and _more_bits(place, num_layers):
        return "Q6_K"
    if file_type == "Q4_K_S" and place < 4:
        return "Q5_K"
    return _VALUES.get(file_type, FILE_TYPES[file_type])


def _down(*, file_type: str, place: int, num_layers: int, num_experts: int) -> str:
    if file_type == "Q3_K_M" and place < num_layers // 16:
        return "Q5_K"
    if file_type in ("Q4_K_M", "Q5_K_M") and _more_bits(place, num_layers):
        return "Q6_K"
    if file_type == "IQ3_M" and num_experts == MIXTRAL and _more_bits(place, num_layers):
        return "Q4_K"
    if file_type in _DOWN_EARLY and place < num_layers // 8:
        return _DOWN_EARLY[file_type]
    return _DOWN.get(file_type, FILE_TYPES[file_type])


def _more_bits(place: int, num_layers: int) -> bool:
    """The first and the last eighth of the layers, and every third between them."""
    eighth = num_layers // 8
    return place < eighth or place >= 7 * num_layers // 8 or (place - eighth) % 3 == 2
