"""A convolution in PyTorch on an image that is split over ranks, forward and backward.

    tasuki run -n 4 examples/torch_convolution.py
    tasuki run -n 2 examples/torch_convolution.py --device gpu     (one GPU a rank)

Tasuki's fields wrap the tensors in place. The halo exchange is a step of the autograd graph: its gradient is the
reverse halo, which adds the shadows' gradients into the cells' owners. Output and gradients are checked against one
convolution of the whole image.
"""

import argparse
import sys

try:
    import torch
except ImportError:
    sys.exit("this example needs PyTorch: pip install torch")

import tasuki

SHAPE = (64, 96)
CHANNELS = 3


class Shadow:
    """Fills the shadow of channel-first images: a field and two halos a channel, made once."""

    def __init__(self, grid, width, device):
        rows, columns = (s.stop - s.start + 2 * width for s in grid.box)
        self.inside = (slice(None), slice(width, rows - width), slice(width, columns - width))
        self.image = torch.zeros(CHANNELS, rows, columns, dtype=torch.float64, device=device)
        fields = [
            tasuki.Field(grid, memory=channel, shadow=width, name=f"channel{i}") for i, channel in enumerate(self.image)
        ]
        self.fill = tasuki.Halo(fields)
        self.collect = tasuki.Halo(fields, reverse=True)

    def run(self, halo, image):
        """`image` after the halo; plans are bound to the memory of `self.image`."""
        self.image.copy_(image)
        halo.run()  # on a GPU in PyTorch's current stream, after the copy and before the clone
        return self.image.clone()


class Exchange(torch.autograd.Function):
    """From an image without shadow to one with it, and back for the gradients."""

    @staticmethod
    def forward(context, owned, shadow):
        context.shadow = shadow
        image = torch.zeros_like(shadow.image)
        image[shadow.inside] = owned
        return shadow.run(shadow.fill, image)

    @staticmethod
    def backward(context, gradient):
        shadow = context.shadow
        return shadow.run(shadow.collect, gradient)[shadow.inside], None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    on_gpu = parser.parse_args().device == "gpu"
    if on_gpu and tasuki.why_no_gpu():
        sys.exit(f"--device gpu needs a GPU: {tasuki.why_no_gpu()}")

    ranks = tasuki.Context()
    device = torch.device("cpu")
    if on_gpu:
        device = torch.device("cuda", tasuki.use_gpu(ranks))
        torch.cuda.set_device(device)
    grid = tasuki.Grid(ranks, SHAPE)
    torch.manual_seed(0)  # the same image and filter on all ranks
    whole = torch.randn(CHANNELS, *SHAPE, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, CHANNELS, 3, 3, dtype=torch.float64, requires_grad=True)
    box = (slice(None), *grid.box)

    expected = torch.nn.functional.conv2d(whole[None], weight, padding=1)[0]
    (expected**2).sum().backward()

    mine = whole.detach()[box].clone().to(device).requires_grad_()
    filters = weight.detach().clone().to(device).requires_grad_()
    result = torch.nn.functional.conv2d(Exchange.apply(mine, Shadow(grid, 1, device))[None], filters)[0]
    (result**2).sum().backward()
    total = tasuki.shared_array(ranks, (ranks.size, *filters.shape))  # the filter's gradient is a sum over ranks
    for root in range(ranks.size):
        part = total[root]
        if ranks.rank == root:
            part[...] = filters.grad.cpu().numpy()
        broadcast = tasuki.Broadcast(ranks, root, part)
        broadcast.run()

    torch.testing.assert_close(result.cpu(), expected[box], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(mine.grad.cpu(), whole.grad[box], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(torch.from_numpy(total.sum(0)), weight.grad, rtol=1e-9, atol=1e-9)
    if ranks.rank == 0:
        print(
            f"convolution on {ranks.size} ranks on {device.type}: output and gradients equal those of the whole image"
        )


if __name__ == "__main__":
    main()
