"""What the bundled trainers reach on one GPU: `python -m tests.measure.bench_gpu [PART…]`.

It needs PyTorch and this checkout, nothing else, and takes some 30 minutes; each part takes less
than 10, so that they can be run one by one. What each has found is kept in build/bench-gpu.json,
and the last lines hold all of it to the goals. `--tiny` runs everything in small on a CPU, to see
that it works; its figures say nothing.

    gemm     what this card reaches in a product of matrices: the roof of all that follows
    vit      ViT-B/16 at 224 as the guide's script trains it (fp32, TF32 off and on, batch 32, Adam,
             images by 7 workers) beside ours, in turns: A B B A
    levers   ours again, with one thing changed at a time
    models   ResNet-50 and GPT-2 124M
    loader   images from packed shards beside synthetic ones

A figure is of the steps after the warm-up alone, over the wall, and without the first save.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = ROOT / "trainers"
OUT = ROOT / "build" / "bench-gpu.json"
WARM_STEPS, SECONDS, MOST = 10, 25.0, 240.0
"""Steps that do not count, seconds that do, and what a case may take with compilation."""
FASTER, VIT_MFU, GPT_MFU = 6.0, 0.45, 0.50
"""The goals: images a second over the guide's script, and shares of the card's peak."""

# The flag as PyTorch has it since 1.12: `highest` is without TF32.
START = """
import runpy, sys, torch
torch.set_float32_matmul_precision("{matmul}")
torch.backends.cudnn.allow_tf32 = {tf32}
sys.argv = sys.argv[1:]
sys.path.insert(0, {trainers!r})
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# The loop of LUMI-AI-Guide's ddp_visiontransformer.py on one GPU: Adam, a loss that is read each
# step, and images that seven workers make of 64 x 64 ones.
GUIDE = """
import json, os, sys, time, torch
from pathlib import Path
from models.table import MODELS, build
row, run = MODELS[sys.argv[1]], Path(os.environ["RUN_DIR"])
channels, height, width = row.sample.input
try:
    import numpy
    from PIL import Image
except ImportError:
    Image = None
class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 80_000
    def __getitem__(self, at):
        made = torch.Generator().manual_seed(at)
        small = torch.randint(0, 256, (64, 64, channels), dtype=torch.uint8, generator=made)
        if Image is None:
            image = torch.nn.functional.interpolate(
                small.permute(2, 0, 1)[None].float() / 255, (height, width))[0]
        else:
            side, edge = round(height * 256 / 224), round(height * 16 / 224)
            image = Image.fromarray(small.numpy()).resize((side, side), Image.BILINEAR)
            image = image.crop((edge, edge, edge + width, edge + height))
            image = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float() / 255
        return (image - 0.45) / 0.225, at % row.sample.classes
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = build(sys.argv[1], row.sample, 0).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.001, foreach=False)
loader = torch.utils.data.DataLoader(Images(), batch_size=32, shuffle=True, num_workers=7)
began, step = time.monotonic(), 0
with open(run / "metrics.jsonl", "w") as file:
    print(json.dumps({"event": "start", "global_batch": 32}), file=file, flush=True)
    while not (run / "stop").exists():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            loss.item()
            step += 1
            line = {"step": step, "seconds": time.monotonic() - began}
            print(json.dumps(line), file=file, flush=True)
            if (run / "stop").exists():
                break
"""


@dataclass(frozen=True)
class Case:
    """One training."""

    name: str
    model: str
    words: tuple[str, ...] = ()
    """Arguments of ddp.py; of the guide's loop none."""
    tf32: bool = True
    guide: bool = False


@dataclass(frozen=True)
class Size:
    """How large everything is."""

    vit: str = "vit-b16"
    resnet: str = "resnet50"
    gpt: str = "gpt2-124m"
    batch: int = 128
    gemm: tuple[int, ...] = (4096, 8192, 16384)
    seconds: float = SECONDS
    images: int = 4096
    side: int = 224


TINY = Size("vit-tiny", "resnet-tiny", "gpt2-tiny", 8, (128,), 2.0, 640, 32)


def cases(part: str, size: Size, folder: Path) -> Iterator[Case]:
    """Yield the trainings of a part."""
    best = ("--precision", "bf16", "--compile", "--batch-size", str(size.batch))
    synthetic = ("--data", "synthetic", "--optimizer", "adamw")
    ours = (*synthetic, *best)
    if part == "vit":
        guide = [Case(f"vit, guide, TF32 {on}", size.vit, (), on == "on", True) for on in _ON_OFF]
        mine = Case("vit, ours", size.vit, ours)
        yield from (*guide, mine, mine, *reversed(guide))
    if part == "levers":
        plain = (*synthetic, "--batch-size", "32")
        yield Case("vit, fp32", size.vit, plain, tf32=False)
        yield Case("vit, TF32", size.vit, plain)
        yield Case("vit, bf16", size.vit, (*plain, "--precision", "bf16"))
        yield Case("vit, bf16, compiled", size.vit, (*plain, *best[:3]))
        yield Case(f"vit, bf16, compiled, batch {size.batch}", size.vit, ours)
    if part == "models":
        yield Case("resnet, ours", size.resnet, ours)
        few = str(max(1, size.batch // 8))
        yield Case("gpt2, ours", size.gpt, (*synthetic, *best[:3], "--batch-size", few))
    if part == "loader" and (packed := shards(folder, size)):
        words = ("--data", str(packed), "--workers", "7", "--optimizer", "adamw", *best)
        yield Case("vit, from shards", size.vit, words)
        yield Case("vit, synthetic", size.vit, ours)


_ON_OFF = ("off", "on")


def shards(folder: Path, size: Size) -> Path | None:
    """Pack some images; None where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        print("loader: Pillow is not installed; not measured")
        return None
    for number in range(size.images):
        side, path = size.side * 8 // 7, folder / "images" / f"{number % 10}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.frombytes("RGB", (side, side), os.urandom(3 * side * side)).save(path)
    words = [str(TRAINERS / "pack.py"), str(folder / "images"), str(folder / "out")]
    words += ["--size", str(size.side)]
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return folder / "out"


def measure(case: Case, size: Size) -> dict[str, Any]:
    """Train for a while; return the start line's facts and the samples a second."""
    with tempfile.TemporaryDirectory() as name:
        run = Path(name)
        matmul = "high" if case.tf32 else "highest"
        program = START.format(matmul=matmul, tf32=case.tf32, trainers=str(TRAINERS))
        if case.guide:
            (run / "guide.py").write_text(GUIDE)
            words = [str(run / "guide.py"), case.model]
        else:
            words = [str(TRAINERS / "ddp.py"), "--model", case.model, *case.words]
            words += ["--epochs", "100000", "--eval", "never", "--save-every", "1000000"]
        with (run / "out").open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", program, *words],
                env=os.environ | {"RUN_DIR": name},
                stdout=out,
                stderr=out,
            )
        try:
            lines = _watched(process, run, size.seconds)
        finally:
            (run / "stop").touch()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if lines is None:
            return {"failed": (run / "out").read_text()[-2000:]}
    start, first, last = lines
    seconds = last["seconds"] - first["seconds"]
    speed = (last["step"] - first["step"]) * start["global_batch"] / seconds
    return start | {"speed": speed, "memory_gib": last.get("memory_gib")}


def _watched(
    process: "subprocess.Popen[bytes]", run: Path, seconds: float
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]] | None:
    """Return the start line, the first counted step and the last; None: it failed, or is slow."""
    ends = time.monotonic() + MOST + seconds
    while time.monotonic() < ends and process.poll() is None:
        time.sleep(0.2)
        path = run / "metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        lines = [json.loads(line) for line in text.splitlines(keepends=True) if line[-1:] == "\n"]
        warm = [line for line in lines if line.get("step", 0) >= WARM_STEPS and "event" not in line]
        if len(warm) > 1 and warm[-1]["seconds"] - warm[0]["seconds"] >= seconds:
            return lines[0], warm[0], warm[-1]
    return None


def gemm(size: Size) -> dict[str, float]:
    """Return the most TFLOP/s of a product of square matrices, by kind of number."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = {}
    for kind, dtype, matmul in (
        ("fp32", torch.float32, "highest"),
        ("tf32", torch.float32, "high"),
        ("bf16", torch.bfloat16, "highest"),
    ):
        torch.set_float32_matmul_precision(matmul)
        best = 0.0
        for side in size.gemm:
            one, other = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
            for rounds in (5, 30):
                _wait(device)
                began = time.monotonic()
                for _ in range(rounds):
                    torch.mm(one, other)
                _wait(device)
                seconds = (time.monotonic() - began) / rounds
            best = max(best, 2 * side**3 / seconds / 1e12)
        found[kind] = best
        print(f"gemm, {kind:<40}{best:>10.4g} TFLOP/s", flush=True)
    return found


def _wait(device: Any) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize()


def line(case: Case, found: dict[str, Any], roof: dict[str, float]) -> str:
    """Return a training as it is printed."""
    if "failed" in found:
        return f"{case.name}: failed\n{found['failed']}"
    text = f"{case.name:<46}{found['speed']:>10.1f} samples/s"
    if flops := found.get("forward_flops"):
        achieved = 3 * flops * found["speed"] / 1e12
        text += f"{achieved:>10.4g} TFLOP/s"
        if peak := found.get("peak_tflops"):
            text += f", MFU {achieved / peak:.1%}"
        if of := roof.get(found.get("precision", "")):
            text += f", {achieved / of:.1%} of the GEMM"
    return text


def goals(kept: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each goal that was measured."""

    def best(name: str) -> dict[str, Any]:
        runs = [run for run in kept.get(name, []) if "speed" in run]
        mean = sum(run["speed"] for run in runs) / len(runs) if runs else 0.0
        return (runs[0] | {"speed": mean}) if runs else {}

    ours = best("vit, ours")
    for on in _ON_OFF:
        if ours and (guide := best(f"vit, guide, TF32 {on}")):
            ratio = ours["speed"] / guide["speed"]
            met = "met" if ratio >= FASTER else "missed"
            yield f"{ratio:.2f} x the guide's script, TF32 {on} (goal {FASTER:g} x: {met})"
    for name, goal in (("vit, ours", VIT_MFU), ("gpt2, ours", GPT_MFU)):
        found = best(name)
        if found.get("peak_tflops"):
            mfu = 3 * found["forward_flops"] * found["speed"] / found["peak_tflops"] / 1e12
            met = "met" if mfu >= goal else "missed"
            yield f"{name}: MFU {mfu:.1%} (goal {goal:.0%}: {met})"


PARTS = ("gemm", "vit", "levers", "models", "loader")


def main() -> None:
    """Measure the parts that are asked for, and say what all of them come to."""
    parser = argparse.ArgumentParser(prog="bench-gpu")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--tiny", action="store_true", help="in small, to see that it works")
    parser.add_argument("--out", type=Path, default=OUT, help="where the figures are kept")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    size = TINY if asked.tiny else Size()
    kept: dict[str, Any] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for part in asked.parts or PARTS:
        if part == "gemm":
            kept["gemm"] = gemm(size)
        fresh = set()
        with tempfile.TemporaryDirectory() as folder:
            for case in cases(part, size, Path(folder)):
                found = measure(case, size)
                kept[case.name] = [*(kept.get(case.name, []) if case.name in fresh else []), found]
                fresh.add(case.name)
                print(line(case, found, kept.get("gemm", {})), flush=True)
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(kept, indent=1))
    for goal in goals(kept):
        print(goal)


if __name__ == "__main__":
    main()
