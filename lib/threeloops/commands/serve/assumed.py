"""Assumed: what is served, in words, and what an answer takes for granted."""

from threeloops import units
from threeloops.commands.budget import capacity_words
from threeloops.commands.serve.copies import Served
from threeloops.commands.serve.fleets import ROUNDS, Fleet
from threeloops.facts.request_traces import request_trace
from threeloops.simulate.product_loop.sizing.replica_runs import CONFIRMING

OF_A_RATE = (
    "requests arrive at random (Poisson) and are dealt evenly to the copies; every step reads caches of mean length",
    f"p99 is the 99th percentile of one simulated run of {CONFIRMING:,} requests or more, good to about a fifth",
)
OF_USERS = (
    "users are dealt evenly to the copies; every step reads caches of mean length",
    f"percentiles are of {ROUNDS} answers of each user, after a first one that all ask for at once",
)
SEAT_IN_TTFT = "the wait for a seat, on average, is in every TTFT"
ASSUMES = (
    "no headroom: each copy is loaded until a little more would break a promise or fill it; bursts need some",
    "memory seats requests of mean length: where many long ones meet, an engine makes some wait or begin again",
    "of kept beginnings memory holds those of running requests; a cache for others needs some of the seats",
    "GPUs never fail",
)
GROUPS_WAIT = (
    "all groups take steps together, so that one that reads a prompt makes the others wait; engines that hold prompts"
    " back until every group has one lose less, and experts are chosen evenly over the GPUs"
)
DRAFTED = (
    "every check yields the mean of its tokens, at once: ITL is the gap between outputs of several; what drafts takes"
    " no memory (add it to --other) and no time for prompts; acceptance is the same in every place and at every load"
)
TOKENS_SHARED = (
    "decode context parallelism is counted in memory and in what attention reads; the queries and partial answers that"
    " GPUs then exchange in every layer cost nothing here, and prompts take as long as without"
)
DRAFTS_SHARED = (
    "drafts beside decode context parallelism: by vLLM's page some attention backends have both, with multi-token"
    " prediction, and its issue 50391 (open in August 2026) asks for the others; SGLang's page has the check of drafts:"
    " try the pair before you count on it"
)
EXPECTED = (
    "an expected time sums the kernels that others timed, and charges no host and no network: `threeloops measured"
    " served` says how far such times are from servers"
)
BOUNDS = "all times are the roofline's bounds, and exchanges of a tensor group cost nothing: no engine is as fast"
STAGED = (
    "as many batches as stages are under way, equally large; layers cost about alike, and the fullest stage has the"
    " larger of table and head; of expected times a batch that reads a prompt makes the others wait: an upper estimate,"
    " of which a played pipeline takes a quarter off where several prompts are read in every round; a handover takes"
    " its bytes at the share of a link's rate, and with the latency, that `threeloops plan` assumes; of bounds a prompt"
    " costs every stage its own part alone, and a handover its bytes at the link's rate"
)
ADAPTED = (
    "every request wants one adapter, each as often as any other, and all lie in memory: none is fetched; adapters"
    " stand beside all matrices of attention, MLP and experts, and none beside a router; what an engine keeps for those"
    " of the tables (vLLM does for Llama's classes) goes into --other; with --dp each group has all of those"
    " beside attention, and those of experts lie where these do; their expected time is that of two matmuls with one"
    " adapter, and the reading of the others, and beside experts or latents there is a bound alone"
)
ADAPTED_BEGINNINGS = (
    "of a prefix cache a request finds what others with its adapter left: keys and values are that adapter's. Activated"
    " LoRA is the exception: it adapts what follows its invocation alone, so that all before it is the base's, and one"
    " cache serves the base and all such adapters (PEFT and llama.cpp have it)"
)


def inputs_said(served: Served) -> dict[str, str]:
    lengths = served.lengths
    kept = f", {lengths.kept:,} of them in the prefix cache" if lengths.kept else ", none of them in a prefix cache"
    mean = " on average" if lengths.drawn else ""
    drawn = {"lengths": _trace_said(served)} if mean else {}
    promised = [f"{name.upper()} {units.fmt_seconds(seconds)}" for name, seconds in served.promised_s.items()]
    return {
        "hardware": f"{served.part.name}, {capacity_words(served.part)}, {served.memory_utilisation:g} of it used",
        "formats": f"weights in {served.weights}, keys and values in {served.cache}",
        **drawn,
        "prompt": f"{lengths.prompt:,} tokens{mean}{kept}",
        "answer": f"{lengths.answer:,} tokens{mean}",
        "promised": f"{', '.join(promised)} for 99 of 100" if promised else "nothing",
        "engine": served.engine + _spread(served),
    }


def title(served: Served) -> str:
    return f"Serving {served.model.name} on {served.part.name}"


def assumed(served: Served, fleet: Fleet) -> tuple[str, ...]:
    load = OF_A_RATE if fleet.largest else (*OF_USERS, SEAT_IN_TTFT)
    assumes = (_lengths_said(served), *load, *ASSUMES, *([GROUPS_WAIT] if served.dp > 1 else []))
    assumes += (DRAFTED,) if served.drafts else ()
    assumes += (TOKENS_SHARED,) if served.dcp > 1 else ()
    assumes += (DRAFTS_SHARED,) if served.dcp > 1 and served.drafts else ()
    assumes += (STAGED,) if served.stages else ()
    assumes += (ADAPTED,) if served.adapters else ()
    assumes += (ADAPTED_BEGINNINGS,) if served.adapters and served.lengths.kept else ()
    if fleet.copy.expected:
        return (*assumes, EXPECTED)
    return (*assumes, f"{BOUNDS}; nothing is expected because {fleet.copy.why_not}")


def _spread(served: Served) -> str:
    own = f", {served.pp} stages of a copy, each on a node of its own" if served.stages else ""
    own += f", {served.dp} groups of a copy with requests of their own" if served.dp > 1 else ""
    over = f"{served.ep} GPUs" if served.ep else "all of its GPUs" if served.dp > 1 else ""
    own += f", the tokens of a cache over {served.dcp} GPUs" if served.dcp > 1 else ""
    if served.drafts:
        share = f"{served.drafts.accepted_share:.0%}".replace("%", " %")
        own += f"; {served.drafts.drafted} tokens drafted before each check, {share} of each place accepted"
    if served.adapters:
        own += f"; {units.counted(served.adapters.number, 'adapter')}, with memory for rank {served.adapters.rank}"
    return f"{own}, experts spread over {over}" if over and served.ep != 1 else own


def _trace_said(served: Served) -> str:
    trace, drawn = request_trace(served.traced), len(served.lengths.drawn)
    without = f"; {len(trace.sample) - drawn:,} of {len(trace.sample):,} are longer than the model was made for"
    said = f"{trace.name}, requests of up to {served.lengths.most:,} tokens"
    return said + (without if drawn < len(trace.sample) else "")


def _lengths_said(served: Served) -> str:
    if not served.traced:
        return "lengths are spread evenly from half to one and a half of their means"
    trace = request_trace(served.traced)
    return (
        f"prompt and answer are those of one of {len(served.lengths.drawn):,} recorded requests, each drawn by itself;"
        f" in the trace the load moves, too: the requests of a minute vary {trace.counts[60]:.3g} times as much as"
        " Poisson's, and that needs headroom"
    )
