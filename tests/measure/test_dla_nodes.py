"""Real graphs as nodes: where HardSwish cuts a network, and the book's own."""

import torch
from torch import Tensor, nn

from threeloops.driving import dla_placement
from threeloops.measure.driving import bev_network, dla_nodes, onnx_engine


class Rebuilt(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.clamp(x + 3, 0, 6) / 6


def stack(activation: type[nn.Module]) -> bytes:
    layers = [part for _ in range(3) for part in (nn.Conv2d(4, 4, 3, padding=1), activation())]
    return onnx_engine.exported(nn.Sequential(*layers, nn.Conv2d(4, 4, 1)), torch.rand(2, 4, 8, 8))


def test_hardswish_cuts_a_network_and_its_parts_do_not() -> None:
    found = {kind: dla_nodes.of(stack(kind)) for kind in (nn.ReLU, nn.Hardswish, Rebuilt)}
    assert {kind: dla_placement.loadables(nodes) for kind, nodes in found.items()} == {
        nn.ReLU: 1,
        nn.Hardswish: 4,
        Rebuilt: 1,
    }
    assert torch.allclose(Rebuilt()(x := torch.linspace(-5, 5, 101)), nn.functional.hardswish(x), atol=1e-6)


def test_quantisers_are_passed_over() -> None:
    graph, seen = stack(nn.ReLU), [torch.rand(2, 4, 8, 8)]
    plain = dla_nodes.of(graph)
    for made in (onnx_engine.calibrated, onnx_engine.for_tensorrt):
        nodes = dla_nodes.of(made(graph, seen, outputs_in_fp32=False))
        assert [(node.op, node.after) for node in nodes] == [(node.op, node.after) for node in plain]


def test_the_books_backbone_is_one_loadable() -> None:
    network = bev_network.BirdsEye().eval()
    graph = onnx_engine.exported(network.backbone, torch.rand(2, 3, 64, 176))
    nodes = dla_nodes.of(graph)
    assert not any(map(dla_placement.fallback, nodes))
    assert dla_placement.loadables(nodes) == 1
    for block in list(network.backbone.modules()):
        for name, part in list(block.named_children()):
            if isinstance(part, nn.ReLU):
                setattr(block, name, nn.Hardswish())
    cut = dla_nodes.of(onnx_engine.exported(network.backbone, torch.rand(2, 3, 64, 176)))
    assert dla_placement.loadables(cut) == 9  # as part 6 prints
