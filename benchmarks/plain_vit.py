"""The vision transformer a user would write in PyTorch instead: the same architecture, data path and recipe.

python benchmarks/plain_vit.py [--device cpu|cuda] [--side 48] [--heads 10] [--batch 256] [--steps 100]
    [--compile default|reduce-overhead|max-autotune]

Patches of 4 pixels, learned positions, a class token, four pre-norm blocks, a head at the class token; width 16 times
the heads, nets four times as wide. Attention is `scaled_dot_product_attention`, training is fused AdamW under autocast
to bfloat16 (full float32 on a CPU), and images stay on the device as bytes.

With headcount's weights it gives headcount's answers. It has more numbers than `labelled_encoder`: the gain and shift
of every layer norm, (2 layers + 1) * 2 width of them, and layers * width biases of keys, which no softmax sees. With
four layers that is 22 width: 3,520 more than headcount's 1,253,770 at 10 heads and 64 patches. (At 3 heads, where a
patch has as many numbers as the width, headcount has no embedding either.) Its last block answers at every token,
though only the class token is read; headcount's answers at the class token alone.
"""

import argparse
import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

IMAGE, PATCH, CLASSES, EXAMPLES = 32, 4, 10, 10_000
HEAD_DIM, LAYERS, DROPOUT = 16, 4, 0.1
LEARNING_RATE, WEIGHT_DECAY, CLIP = 1e-3, 0.05, 1.0
SCHEDULED, RISING = 3000, 200
REPEATS, WARMUP = 3, 3
MODES = ("default", "reduce-overhead", "max-autotune")


class Block(nn.Module):
    """Attention, then a net, each behind a layer norm, with dropout, and added to the tokens."""

    def __init__(self, *, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_net = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.net = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width), nn.Dropout(DROPOUT)
        )
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens + self.dropout(self.output(self._attend(self.before_attention(tokens))))
        return tokens + self.net(self.before_net(tokens))

    def _attend(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length, width = tokens.shape
        split = self.queries_keys_values(tokens).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(queries, keys, values)
        return attended.transpose(1, 2).reshape(batch, length, width)


class VisionTransformer(nn.Module):
    """Classes of images that are given as `length` patches of `dim` numbers."""

    def __init__(self, *, heads: int, length: int, dim: int = 3 * PATCH**2, layers: int = LAYERS):
        super().__init__()
        width = HEAD_DIM * heads
        self.embed = nn.Linear(dim, width)
        self.positions = nn.Parameter(torch.empty(length, width).uniform_(-1, 1))
        self.class_token = nn.Parameter(torch.empty(1, 1, width).uniform_(-1, 1))
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.Sequential(*(Block(width=width, heads=heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        embedded = self.embed(patches) + self.positions
        tokens = torch.cat([self.class_token.expand(len(patches), -1, -1).to(embedded.dtype), embedded], dim=1)
        return self.head(self.norm(self.blocks(self.dropout(tokens)))[:, 0])


class Images:
    """Random images and labels, kept on the device as bytes; `batch` draws some and makes patches of them."""

    def __init__(self, *, side: int, device: str):
        self.side, self.device = side, device
        self.images = torch.randint(256, (EXAMPLES, IMAGE, IMAGE, 3), dtype=torch.uint8, device=device)
        self.labels = torch.randint(CLASSES, (EXAMPLES,), device=device)
        some = self.images[:1000].float() / 255
        self.mean, self.scale = some.mean(dim=(0, 1, 2)), some.std(dim=(0, 1, 2))

    def batch(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.randint(EXAMPLES, (count,), device=self.device)
        frames = self.images[chosen] if self.side == IMAGE else self._placed(chosen)
        colours = (frames / 255 - self.mean) / self.scale
        across = self.side // PATCH
        cut = colours.view(count, across, PATCH, across, PATCH, 3).transpose(2, 3)
        return cut.reshape(count, across**2, PATCH**2 * 3), self.labels[chosen]

    def _placed(self, chosen: torch.Tensor) -> torch.Tensor:
        """Each image at a drawn place of its frame; a pixel outside has the colour of the nearest one inside."""
        corners = torch.randint(self.side - IMAGE + 1, (2, len(chosen), 1), device=self.device)
        rows, columns = (torch.arange(self.side, device=self.device) - corners).clamp(0, IMAGE - 1)
        return self.images[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]


class Trainer:
    """A model, its optimiser and its images, warmed up; `images_per_second` trains it.

    `mode`: that of `torch.compile`, for the model's forward and backward pass; None runs it eager.
    """

    def __init__(self, *, device: str, heads: int, side: int, batch: int, mode: str | None = None):
        self.device, self.count = device, batch
        self.images = Images(side=side, device=device)
        self.model = VisionTransformer(heads=heads, length=(side // PATCH) ** 2).to(device)
        self.call = torch.compile(self.model, mode=mode) if mode else self.model
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), weight_decay=WEIGHT_DECAY, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, share_of_peak)
        self._train(WARMUP)

    def images_per_second(self, steps: int) -> float:
        began = time.perf_counter()
        loss = self._train(steps)
        seconds = time.perf_counter() - began
        if not math.isfinite(loss):
            raise FloatingPointError("PyTorch's model diverged: this is not the time of training")
        return steps * self.count / seconds

    def _train(self, steps: int) -> float:
        """Train, and give the last loss, which waits for a GPU to be done."""
        loss = torch.zeros(())
        for _ in range(steps):
            patches, labels = self.images.batch(self.count)
            with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
                loss = functional.cross_entropy(self.call(patches), labels)
            self.optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
            self.optimiser.step()
            self.schedule.step()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return float(loss.detach())


def share_of_peak(step: int) -> float:
    """The share of the peak learning rate at a step: linear warm-up, then a cosine to zero."""
    if step < RISING:
        return (step + 1) / RISING
    return 0.5 * (1 + math.cos(math.pi * (step - RISING) / (SCHEDULED - RISING)))


def images_per_second(*, device: str, heads: int, side: int, batch: int, steps: int, mode: str | None = None) -> float:
    """The median over `REPEATS` timings of `steps` steps, after a warm-up."""
    trainer = Trainer(device=device, heads=heads, side=side, batch=batch, mode=mode)
    return statistics.median(trainer.images_per_second(steps) for _ in range(REPEATS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    for name, default in {"heads": 10, "side": 48, "batch": 256, "steps": 100}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default: {default}")
    parser.add_argument("--compile", dest="mode", choices=MODES, help="through torch.compile, in this mode")
    arguments = vars(parser.parse_args())
    print(f"torch {torch.__version__}, {arguments}: {images_per_second(**arguments):.0f} images/s")


if __name__ == "__main__":
    main()
