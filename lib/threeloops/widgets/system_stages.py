"""The stages of a machine-learning system, from data to vehicle: which loop each belongs to, what can be done there,
and where the book teaches it.

>>> list(STAGES)
['data', 'loader', 'training', 'checkpoint', 'compression', 'serving', 'vehicle']
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage."""

    name: str
    loop: str
    does: str
    levers: tuple[str, ...]  # what can be done there to make the whole faster or cheaper
    taught: str
    part: str  # where to begin: "2.1 Why many GPUs",
    copy: str  # and the reader's notebook of that part; a test holds both to the book

    @property
    def sentence(self) -> str:
        """All of it in words."""
        return (
            f"{self.name.capitalize()} ({self.loop}): {self.does}. To be done here: {', '.join(self.levers[:-1])},"
            f" {self.levers[-1]}. Taught in: {self.taught}."
        )


STAGES = {
    "data": Stage(
        name="data",
        loop="before the loops",
        does="drives are recorded, chosen, labelled and stored",
        levers=(
            "keep fewer and better samples",
            "store them in the size that training reads",
            "write few large files in place of many small ones",
        ),
        taught="the driving case study",
        part="4.2 The data coming in",
        copy="chapters/4_driving_case_study/2_the_data_coming_in.ipynb",
    ),
    "loader": Stage(
        name="loader",
        loop="inner loop",
        does="processors fetch, decode and augment the next batch while GPUs compute",
        levers=("more workers", "decode on the GPU", "copy ahead from pinned memory", "cache what is read again"),
        taught="Three loops, Overheads",
        part="1.7 Overheads",
        copy="chapters/1_inner_loop/7_overheads.ipynb",
    ),
    "training": Stage(
        name="training",
        loop="training loop",
        does="GPUs compute gradients and agree on them",
        levers=(
            "narrower numbers",
            "fused kernels",
            "compiled graphs",
            "an all-reduce that overlaps",
            "sharding in place of copies",
        ),
        taught="all parts on the inner loop, then The training loop",
        part="2.1 Why many GPUs",
        copy="chapters/2_training_loop/1_why_many_gpus.ipynb",
    ),
    "checkpoint": Stage(
        name="checkpoint",
        loop="training loop",
        does="weights and optimiser states are written, so that a crash costs minutes and not the run",
        levers=(
            "write from each rank its own shard",
            "copy first and write in the background",
            "choose the interval from the failure rate",
        ),
        taught="The training loop",
        part="2.10 Failure as routine",
        copy="chapters/2_training_loop/10_failure_as_routine.ipynb",
    ),
    "compression": Stage(
        name="compression",
        loop="product loop",
        does="the trained model is made smaller than it was trained",
        levers=("quantise", "prune what the hardware can skip", "distil into a smaller one"),
        taught="Number formats, then The product loop",
        part="3.9 Compression",
        copy="chapters/3_product_loop/9_compression.ipynb",
    ),
    "serving": Stage(
        name="serving",
        loop="product loop",
        does="requests wait, share batches and are answered",
        levers=(
            "batch continuously",
            "page the KV cache",
            "split prefill from decode",
            "guess several tokens and verify them at once",
        ),
        taught="The product loop",
        part="3.5 Batching",
        copy="chapters/3_product_loop/5_batching.ipynb",
    ),
    "vehicle": Stage(
        name="vehicle",
        loop="product loop",
        does="one small chip answers every camera frame before the next one comes",
        levers=(
            "plan for the worst case, not for the mean",
            "overlap the stages",
            "leave headroom for heat",
            "run less often what changes slowly",
        ),
        taught="the driving case study",
        part="4.1 A car that must answer in time",
        copy="chapters/4_driving_case_study/1_a_car_that_must_answer_in_time.ipynb",
    ),
}
