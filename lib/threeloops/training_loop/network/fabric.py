"""Fabric: what a path of links carries, and what a tapered network of leaf and spine switches makes of an exchange.

GPUs hang on leaf switches, leaves on spines. A leaf has one uplink's worth of bandwidth for every `oversubscription`
GPUs below it.

>>> slowest_link({"GPU to switch, PCIe": 63e9, "network card": 50e9, "leaf to spine": 50e9})
('network card', 50000000000.0)
>>> all_to_all_s(size_bytes=1e9, leaves=4, gpus_per_leaf=8, oversubscription=2, bytes_per_s_one_way=50e9)
0.03

Source: Leiserson, Fat-Trees: Universal Networks for Hardware-Efficient Supercomputing, IEEE Trans. Computers
        C-34(10), 1985 (channel capacities);
Dally, Towles, Principles and Practices of Interconnection Networks, 2004, section 3.3 (load of a channel bounds the
throughput)
"""

from collections.abc import Mapping

from threeloops import checks


def slowest_link(path_bytes_per_s: Mapping[str, float]) -> tuple[str, float]:
    """The link that sets the rate of a path, and that rate; of equals, the first.

    Formula:  min over the links, if each byte crosses every link once and pieces follow each other without a gap
    Raises:   ValueError for an empty path
    Counted:  drills.all_reduce.networks.DETOUR
    """
    if not path_bytes_per_s:
        raise ValueError("path_bytes_per_s={} must name at least one link")
    checks.positive(**dict(path_bytes_per_s))
    name = min(path_bytes_per_s, key=lambda link: path_bytes_per_s[link])
    return name, path_bytes_per_s[name]


def bisection_bytes_per_s(*, num_gpus: int, bytes_per_s_one_way: float, oversubscription: float) -> float:
    """What one half of the GPUs can send to the other half, and at the same time receive.

    Formula:  num_gpus / 2 * B / oversubscription, one way; an advertised figure may add both ways, which is twice
              that
    Assumes:  an even number of GPUs, each with a link of B
    Counted:  tests.training_loop.test_fabric.test_the_worst_cut_of_a_small_tapered_network_is_the_bisection

    >>> bisection_bytes_per_s(num_gpus=256, bytes_per_s_one_way=450e9, oversubscription=2) / 1e12
    28.8
    """
    checks.divides(part="2 halves", part_value=2, whole="gpus", whole_value=num_gpus)
    checks.positive(bytes_per_s_one_way=bytes_per_s_one_way)
    _ratio(oversubscription)
    return num_gpus / 2 * bytes_per_s_one_way / oversubscription


def all_to_all_s(
    *, size_bytes: float, leaves: int, gpus_per_leaf: int, oversubscription: float, bytes_per_s_one_way: float
) -> float:
    """Seconds of an all-to-all among all GPUs, latency aside: its slowest link.

    Formula:  n = leaves * g. GPU link: (n - 1)/n * S / B. Uplinks of a leaf: g * (n - g)/n * S / (g * B /
              oversubscription). The larger
    Units:    size_bytes is the buffer of one GPU, 1/n of which goes to each
    Assumes:  one leaf per group of g GPUs, traffic spread evenly over the spines, every GPU on a link of its own
    Counted:  simulate.training_loop.fabric.all_to_all
    """
    rate = _fabric(size_bytes, leaves, gpus_per_leaf, oversubscription, bytes_per_s_one_way)
    ranks = leaves * gpus_per_leaf
    port_s = (ranks - 1) / ranks * size_bytes / rate
    uplink_s = (ranks - gpus_per_leaf) / ranks * size_bytes * oversubscription / rate
    return max(port_s, uplink_s)


def ring_all_reduce_s(
    *,
    size_bytes: float,
    leaves: int,
    gpus_per_leaf: int,
    oversubscription: float,
    bytes_per_s_one_way: float,
    crossing_per_leaf: int,
) -> float:
    """Seconds of one ring all-reduce among all GPUs, latency aside.

    Formula:  2 (n - 1)/n * S / B, times max(1, c * oversubscription / g), where c of a leaf's g GPUs have their
              right-hand neighbour on another leaf
    Units:    crossing_per_leaf is c: 1 when the ring finishes a leaf before it leaves it, g when every step changes
              leaf
    Assumes:  as all_to_all_s; all steps alike
    Raises:   ValueError for c above g
    Counted:  simulate.training_loop.fabric.ring
    """
    rate = _fabric(size_bytes, leaves, gpus_per_leaf, oversubscription, bytes_per_s_one_way)
    checks.count(crossing_per_leaf=crossing_per_leaf)
    if crossing_per_leaf > gpus_per_leaf:
        raise ValueError(f"crossing_per_leaf={crossing_per_leaf} must not exceed gpus_per_leaf={gpus_per_leaf}")
    ranks = leaves * gpus_per_leaf
    crossing = crossing_per_leaf if leaves > 1 else 0
    return 2 * (ranks - 1) / ranks * size_bytes / rate * max(1.0, crossing * oversubscription / gpus_per_leaf)


def _fabric(
    size_bytes: float, leaves: int, gpus_per_leaf: int, oversubscription: float, bytes_per_s_one_way: float
) -> float:
    checks.positive(size_bytes=size_bytes, bytes_per_s_one_way=bytes_per_s_one_way)
    checks.count(leaves=leaves, gpus_per_leaf=gpus_per_leaf)
    _ratio(oversubscription)
    return bytes_per_s_one_way


def _ratio(oversubscription: float) -> None:
    checks.positive(oversubscription=oversubscription)
    if oversubscription < 1:
        raise ValueError(
            f"oversubscription={oversubscription} must be at least 1, like 2 for twice as much downlink as uplink"
        )
