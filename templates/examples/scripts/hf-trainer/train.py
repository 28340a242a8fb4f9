"""Train a language model with Hugging Face's Trainer; the lines for lumitui are numbered.

Without --model, it builds a tiny model with new weights and trains on synthetic text: replace both.
If the site's nodes have no network, `stage:` uploads the folder of a model and your data.
"""

import argparse

import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, Trainer
from transformers import TrainingArguments as Arguments

import lumitui_run as run  # 1

TOKENS, LENGTH = 128, 32


class Counting(torch.utils.data.Dataset):
    """Sequences that count upwards from a number: the next token can be learnt."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 4096

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return a sequence, which is what is to be said, too."""
        tokens = (index * 7919 + torch.arange(LENGTH)) % TOKENS
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    """Train from the beginning or the newest checkpoint."""
    parser = argparse.ArgumentParser(description="Train a language model with transformers.")
    parser.add_argument("--model", help="folder with a Hugging Face model")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=8, help="sequences per rank")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    if args.model:
        model = AutoModelForCausalLM.from_pretrained(args.model)
    else:
        torch.manual_seed(0)
        tiny = GPT2Config(vocab_size=TOKENS, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=2)
        model = GPT2LMHeadModel(tiny)
    settings = Arguments(
        output_dir=str(run.checkpoint_dir()),  # 2
        max_steps=args.steps,
        per_device_train_batch_size=args.batch_size,
        learning_rate=args.lr,
        logging_steps=1,
        save_steps=args.save_every,
        save_total_limit=2,
        use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True,
        report_to="none",
        seed=0,
    )
    trainer = Trainer(
        model=model,
        args=settings,
        train_dataset=Counting(),
        callbacks=[run.hf_callback()],  # 3
    )
    saved = run.newest("checkpoint-*", last_file="trainer_state.json") if args.resume else None  # 4
    trainer.train(resume_from_checkpoint=str(saved) if saved else None)
    run.finish()  # 5


if __name__ == "__main__":
    main()
