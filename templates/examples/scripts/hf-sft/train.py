"""Fine-tune a language model offline with TRL and LoRA; the lines for lumitui are numbered.

The data are lines of JSON, in one of TRL's forms: {"text": …}, {"prompt": …, "completion": …} or
{"messages": [{"role": …, "content": …}, …]}. The result is in $RUN_DIR/adapter.
"""

import argparse

import torch
from datasets import load_dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

import lumitui_run as run  # 1


def main() -> None:
    """Train from the beginning or the newest checkpoint."""
    parser = argparse.ArgumentParser(description="Fine-tune a language model with LoRA.")
    parser.add_argument("--model", required=True, help="folder with a Hugging Face model")
    parser.add_argument("--data", required=True, help="file of JSON lines")
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--batch-size", type=int, default=4, help="sequences per rank")
    parser.add_argument("--accumulate", type=int, default=1, help="batches per step")
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--length", type=int, default=1024, help="maximum tokens per sequence")
    parser.add_argument("--rank", type=int, default=16, help="rank of LoRA's matrices")
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    gpu = torch.cuda.is_available()
    settings = SFTConfig(
        output_dir=str(run.checkpoint_dir()),  # 2
        num_train_epochs=args.epochs,
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=args.accumulate,
        learning_rate=args.lr,
        max_length=args.length,
        bf16=gpu,
        use_cpu=not gpu,
        gradient_checkpointing=gpu,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        logging_steps=1,
        save_steps=args.save_every,
        save_total_limit=2,
        disable_tqdm=True,
        report_to="none",
        seed=0,
    )
    data = load_dataset("json", data_files=args.data, split="train")
    trainer = SFTTrainer(
        model=args.model,
        args=settings,
        train_dataset=data,
        peft_config=LoraConfig(r=args.rank, target_modules="all-linear", task_type="CAUSAL_LM"),
        callbacks=[run.hf_callback()],  # 3
    )
    saved = run.newest("checkpoint-*", last_file="trainer_state.json") if args.resume else None  # 4
    trainer.train(resume_from_checkpoint=str(saved) if saved else None)
    trainer.save_model(str(run.RUN_DIR / "adapter"))
    run.finish()  # 5


if __name__ == "__main__":
    main()
