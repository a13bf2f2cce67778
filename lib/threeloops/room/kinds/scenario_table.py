"""Debugging scenarios, one row each: what is seen, which loop is ill, why, what to look at first, what to do.

`akin` names rows whose cause, first look or fix a candidate could defend here too; they are never offered as wrong
answers to each other.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One row."""

    key: str
    loop: str
    section: str
    symptom: str
    cause: str
    look: str
    fix: str
    source: str
    akin: tuple[str, ...] = ()
    also: str = ""  # what else to try or to suspect: in the chapter's table, never in a question


SCENARIOS = (
    Scenario(
        key="slow-loader",
        loop="inner",
        section="Profiling",
        symptom=(
            "GPU utilisation swings around 30 % while every CPU core is at 100 %. With half the model, the step takes"
            " as long as before."
        ),
        cause="batches are prepared more slowly than the GPU uses them up",
        look="run the data loader alone, without the model, and time its batches",
        fix="files that were decoded beforehand, or decoding on the GPU: the cores have nothing left for more workers",
        source="Mohan et al., Analyzing and Mitigating Data Stalls in DNN Training, VLDB 2021, arXiv:2007.06775",
        akin=("hidden-syncs", "one-slow-rank"),
    ),
    Scenario(
        key="activations-out-of-memory",
        loop="training",
        section="Training memory",
        symptom=(
            "A model trains at batch 1 and runs out of memory at batch 4. Weights, gradients and optimiser states fit"
            " with room to spare."
        ),
        cause="what layers keep for their backward pass grows with batch times sequence",
        look="torch.cuda.max_memory_allocated() after the forward pass, at batch 1 and at batch 2",
        fix="run layers again in the backward pass instead of keeping them, or cut the batch into micro-batches",
        source="Korthikanti et al., 2022, arXiv:2205.05198; PyTorch documentation, torch.utils.checkpoint, 2025",
        akin=("no-speed-up-across-nodes",),
        also="then shorten the sequence; sharding (FSDP) helps states alone",
    ),
    Scenario(
        key="no-speed-up-across-nodes",
        loop="training",
        section="Data parallelism and all-reduce",
        symptom=(
            "From 8 to 64 GPUs, one node to eight, a step of the same total batch gets no faster. Every rank shows the"
            " same timeline."
        ),
        cause="adding up gradients between nodes takes longer than the backward pass can hide",
        look="nccl-tests' all_reduce_perf over all nodes: its busbw beside the rate of a network card",
        fix="add up several micro-batches before each exchange, which makes the total batch larger",
        source="Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704; NVIDIA nccl-tests, doc/PERFORMANCE.md",
        akin=("one-slow-rank", "activations-out-of-memory"),
        also=(
            "buckets hide no more than the backward pass takes; last, narrower gradients, or local SGD (each trains"
            " alone, weights are averaged now and then)"
        ),
    ),
    Scenario(
        key="loss-jumps-every-epoch",
        loop="training",
        section="The optimisation stack",
        symptom=(
            "The loss jumps every thousand steps and recovers over the next hundred. A thousand steps are exactly one"
            " pass over the data."
        ),
        cause="each pass begins in the same order, sorted by where the samples came from",
        look="print the ids of the samples in the first batches of two passes, beside each other",
        fix="give the sampler a new seed for each pass (set_epoch), and shuffle across files",
        source="PyTorch documentation, torch.utils.data.distributed.DistributedSampler, 2025 (set_epoch)",
        also="else a loader that restarts, or a shuffle buffer too small",
    ),
    Scenario(
        key="nan-in-fp16",
        loop="inner",
        section="Number formats",
        symptom=(
            "Training in FP16 turns to NaN after some hundred steps. With the same data and learning rate, BF16 runs"
            " through."
        ),
        cause="gradients grow past the largest number that the format holds and become infinite",
        look="log the largest gradient and the loss scale of each step, under torch.autograd.detect_anomaly",
        fix=(
            "a loss scale that skips a step and halves itself when a gradient overflows, or a format with more exponent"
            " bits"
        ),
        source="Micikevicius et al., 2018, arXiv:1710.03740, section 3.2",
        also="in BF16 too? learning rate, or a bad sample; anomaly mode names the operation",
        akin=("outlier-channels", "calibrated-on-daylight"),
    ),
    Scenario(
        key="cache-never-freed",
        loop="product",
        section="KV cache",
        symptom=(
            "A server's memory grows for hours under a steady load until requests are refused. Many clients hang up"
            " early. A restart cures it for a day."
        ),
        cause="the cache of requests that ended in an unusual way is never given back",
        look="plot cache blocks in use beside the number of running requests",
        fix="give the blocks back on every way out of a request, and end requests whose client is gone",
        source="Kwon et al., 2023, arXiv:2309.06180, section 4 (blocks are freed when a request ends)",
        akin=("queue-at-the-door", "prefixes-in-a-circle"),
    ),
    Scenario(
        key="hidden-syncs",
        loop="inner",
        section="Overheads",
        symptom=(
            "Since the loss of each micro-step is printed, steps are 30 % slower. No kernel takes longer; between them"
            " the GPU now pauses."
        ),
        cause="every value that is read makes the CPU wait for the GPU, which then waits for new work",
        look="torch.cuda.set_sync_debug_mode('warn'), and look for waits in the CPU's row of a profile",
        fix="add the values up on the GPU and read them once in a hundred steps",
        source=(
            "PyTorch documentation, CUDA semantics (asynchronous execution), 2025; torch.cuda.set_sync_debug_mode, 2025"
        ),
        akin=("slow-loader",),
    ),
    Scenario(
        key="recompiled-again",
        loop="inner",
        section="Overheads",
        symptom=(
            "torch.compile was a third faster in the benchmark. On real text of all lengths the job is slower than"
            " before, and now and then a step takes seconds."
        ),
        cause="new shapes keep arriving, and each is compiled anew",
        look="run with TORCH_LOGS=recompiles and read the reasons",
        fix="pad to a few lengths, or mark that dimension as dynamic",
        source="PyTorch documentation, Dealing with Recompilations, 2025",
    ),
    Scenario(
        key="one-slow-rank",
        loop="training",
        section="Failure as routine",
        symptom=(
            "On 64 GPUs all ranks but one spend a fifth of the step inside the all-reduce. The one that does not is"
            " always the same machine."
        ),
        cause="one GPU computes more slowly than the others, and all others wait for it",
        look="compare the compute time of each rank, then nvidia-smi -q -d PERFORMANCE on the slowest",
        fix="take that machine out of the job and mend its cooling or its clocks",
        source="Jiang et al., MegaScale, NSDI 2024, arXiv:2402.15627 (stragglers)",
        akin=("no-speed-up-across-nodes", "slow-when-warm", "slow-loader", "a-neighbour-on-the-bus"),
    ),
    Scenario(
        key="long-prompts-stall-others",
        loop="product",
        section="Prefill and decode",
        symptom=(
            "Tokens come every 30 ms, except that all conversations stop for a second whenever one user sends a long"
            " document."
        ),
        cause="a long prompt is read in one step, and all other requests' next tokens wait for that step",
        look="plot tokens per scheduler step beside the gaps between output tokens",
        fix="read long prompts in chunks that share their steps with decoding",
        source="Agrawal et al., Sarathi-Serve, OSDI 2024, arXiv:2403.02310",
        akin=("queue-at-the-door", "bursts-at-the-door"),
    ),
    Scenario(
        key="queue-at-the-door",
        loop="product",
        section="Queues",
        symptom=(
            "In the evening the first token takes 8 s instead of 0.3 s. Once it has come, the others follow as fast as"
            " at noon."
        ),
        cause="more requests arrive than are served, and new ones wait before anything is computed for them",
        look="the number of waiting requests, and their time in the queue",
        fix="more replicas, or refuse what cannot be served in time",
        source="Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383",
        akin=(
            "long-prompts-stall-others",
            "cache-never-freed",
            "frames-pile-up",
            "bursts-at-the-door",
            "prefixes-in-a-circle",
        ),
    ),
    Scenario(
        key="pauses-by-the-clock",
        loop="product",
        section="Queues",
        symptom=(
            "p99 is five times p50. The slow requests came just after a full five seconds, in busy minutes and in quiet"
            " ones."
        ),
        cause="something on the host stops the server for a moment at fixed times",
        look="the times of slow requests, folded by the period, beside the host's own jobs and its garbage collector",
        fix="allocate once, move the collector and periodic jobs out of the way, record the step as a graph",
        source="Dean and Barroso, The Tail at Scale, Comm. ACM 56(2), 2013, doi:10.1145/2408776.2408794",
        akin=("bursts-at-the-door", "a-neighbour-on-the-bus"),
    ),
    Scenario(
        key="bursts-at-the-door",
        loop="product",
        section="Queues",
        symptom=(
            "The server is busy a fifth of the time. Slow requests come in clumps at no fixed distance, and within a"
            " clump each is slower than the one before."
        ),
        cause="requests arrive in bursts, and each burst is worked off one after the other",
        look="arrivals per tenth of a second beside the slow requests",
        fix="several replicas behind one queue, limits per client, retries with jitter",
        source="Kingman, 1961, doi:10.1017/S0305004100036094 (what uneven arrivals cost)",
        akin=("pauses-by-the-clock", "queue-at-the-door", "long-prompts-stall-others", "a-neighbour-on-the-bus"),
    ),
    Scenario(
        key="prefixes-in-a-circle",
        loop="product",
        section="Paging",
        symptom=(
            "A ninth customer is added, each with a long system prompt of its own. Prefix hits fall from nine tenths to"
            " one tenth, and the first token comes late for all."
        ),
        cause="customers are served in turn, and each evicts the beginning that is needed next",
        look="evictions per request, and which customer's blocks are evicted before which request",
        fix="serve one customer's requests together, or send each customer to the same replica",
        source="Zheng et al., SGLang, 2023, arXiv:2312.07104 (scheduling by the longest shared prefix)",
        akin=("queue-at-the-door", "cache-never-freed"),
    ),
    Scenario(
        key="outlier-channels",
        loop="product",
        section="Compression",
        symptom=(
            "With weights alone in 8 bits a model answers as before. With activations in 8 bits too, one scale per"
            " tensor, it answers nonsense."
        ),
        cause="a few channels are so large that the common scale rounds all others to nearly nothing",
        look="the largest absolute activation of each channel, layer by layer",
        fix="a scale per channel or per token, or 16 bits for those few channels",
        source="Dettmers et al., LLM.int8(), 2022, arXiv:2208.07339",
        akin=("nan-in-fp16", "calibrated-on-daylight"),
    ),
    Scenario(
        key="frames-pile-up",
        loop="driving",
        section="Tails and schedules",
        symptom=(
            "A camera gives 30 pictures a second, the detector manages 25. Each answer is right, and older than the one"
            " before: after a minute by seconds."
        ),
        cause="pictures queue up before a stage that is slower than the camera",
        look="at every stage, the age of the picture in hand: now minus its time of exposure",
        fix="a queue of one that keeps the newest picture, and a stage that keeps up",
        source="Kopetz, Real-Time Systems, 2nd ed., 2011, chapter 5 (how old an observation is when it is used)",
        akin=("queue-at-the-door", "late-in-dense-traffic", "old-though-in-time"),
    ),
    Scenario(
        key="late-in-dense-traffic",
        loop="driving",
        section="Tails and schedules",
        symptom=(
            "A pipeline takes 24 ms of its 33 ms on average. One picture in a hundred is late, nearly always where the"
            " street is full."
        ),
        cause="what comes after the network takes longer the more objects it has found",
        look="latency of each picture, at its 99th percentile, beside the number of objects in it",
        fix="a fixed number of candidates at most, so that the worst case has a bound",
        source=(
            "Dean and Barroso, The Tail at Scale, Communications of the ACM 56(2), 2013, doi:10.1145/2408776.2408794;"
            " Kopetz, 2011, chapter 10 (worst case)"
        ),
        akin=("frames-pile-up", "a-neighbour-on-the-bus"),
    ),
    Scenario(
        key="slow-when-warm",
        loop="driving",
        section="Silicon in the car",
        symptom=(
            "On the bench a network meets its deadline. In the car it does so for ten minutes, and from then on misses"
            " every one, whatever it sees."
        ),
        cause="the chip has become hot and lowers its clocks",
        look="tegrastats over a long drive: clocks and temperatures beside the latency",
        fix="plan with the rates of a power mode that the cooling can hold for good",
        source="NVIDIA Jetson Linux Developer Guide, Platform Power and Performance, 2025",
        akin=("one-slow-rank", "a-neighbour-on-the-bus"),
    ),
    Scenario(
        key="old-though-in-time",
        loop="driving",
        section="Tails and schedules",
        symptom=(
            "Every stage of a car meets its own deadline, yet the planner brakes for where cars were a quarter of a"
            " second ago. The stages run on clocks of their own."
        ),
        cause="each stage waits for its next period before it reads what the one before it has written",
        look="the capture time that travels with each value, read where the command leaves the computer",
        fix="start each stage when the one before it ends, or run the readers more often",
        source="Davare et al., Design Automation Conference, 2007, doi:10.1145/1278480.1278553",
        akin=("frames-pile-up", "clocks-apart"),
    ),
    Scenario(
        key="a-neighbour-on-the-bus",
        loop="driving",
        section="Tails and schedules",
        symptom=(
            "Alone on its chip a network is never late. Since a recorder writes all cameras to disk, one frame in two"
            " hundred is, in empty streets and in full ones."
        ),
        cause="another process takes memory bandwidth while the network needs it",
        look="latency of the network with the neighbour off and on, beside the memory traffic of both",
        fix="a limit on the neighbour's bandwidth, and a budget that was measured with every neighbour running",
        source="Linux kernel documentation, arm64 MPAM (memory partitioning and monitoring), 2026",
        akin=("late-in-dense-traffic", "slow-when-warm", "one-slow-rank", "pauses-by-the-clock", "bursts-at-the-door"),
    ),
    Scenario(
        key="calibrated-on-daylight",
        loop="driving",
        section="Making it fast",
        symptom=(
            "In 8 bits a detector is twice as fast and loses half a point on the test set. At dusk it misses"
            " pedestrians that the 16-bit network sees."
        ),
        cause="ranges of activations were taken from daylight, and what lies beyond them at dusk is cut off",
        look="accuracy condition by condition, and the share of activations at the end of their range",
        fix="calibrate on every condition, keep the few sensitive layers in 16 bits, or train with rounding",
        source="Nagel et al., A White Paper on Neural Network Quantization, 2021, arXiv:2106.08295",
        akin=("outlier-channels", "nan-in-fp16"),
    ),
    Scenario(
        key="clocks-apart",
        loop="driving",
        section="The data coming in",
        symptom=(
            "Boxes from a camera and points from a LiDAR lie on each other while the car stands. In a"
            " bend they part, the more the faster it turns and the further away they are."
        ),
        cause="the time stamps of the two sensors are wrong by a constant, in which the car goes on turning",
        look="the distance between box and points against turn rate times range: its slope is the error in time",
        fix="one clock for all sensors, stamps at mid-exposure, and every point moved to one moment",
        source="MathWorks documentation, undistortEgoMotion, R2023a (points moved to one moment by the car's motion)",
        akin=("old-though-in-time",),
    ),
)
