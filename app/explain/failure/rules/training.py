"""What lines of PyTorch, DeepSpeed and trainers say of the training itself."""

from lumitui.app.explain.failure.rules.row import LogRule
from lumitui.app.explain.failure.rules.row import log_rule as _rule

TRAINING: tuple[LogRule, ...] = (
    _rule(
        "batch-triangle",
        r"Check batch related parameters|train_batch_size is not equal to"
        r"|batch size .{0,40}(?:must "
        r"be|is not|not) divisible|(?:train|global|total)_batch_size .{0,60}(?:divisible|match|"
        r"equal)|micro.?batch.{0,80}(?:divisible|not equal|must)"
        r"|DeepSpeed config values that mismatch TrainingArguments",
        "The batch sizes contradict each other for this number of ranks.",
        "train_batch_size must be micro batch x accumulation x ranks; give DeepSpeed's "
        "configuration as `deepspeed: {config: …}` and it is recomputed.",
    ),
    _rule(
        "two-precisions",
        r"bfloat16 and fp16 modes cannot be simultaneously enabled"
        r"|[Aa]t most one of fp16 and bf16 can be True|only one of .{0,20}fp16.{0,20}bf16",
        "The configuration enables fp16 and bf16.",
        "Keep one of them.",
    ),
    _rule(
        "numerics",
        r"[Ll]oss scale already at minimum|Minimum loss scale reached|[Ll]oss scale.{0,30}too small"
        r"|(?i:floatingpointerror): (?:Minimum loss|Loss became|NaN)|FloatingPointError"
        r"|returned nan values in its \d+th output|(?i:\bloss\b.{0,20}\bis\b.{0,20}\b(?:nan|inf)\b)"
        r"|(?i:(?:nan|inf(?:inite)?)(?: or (?:nan|inf))? (?:loss|gradients?|values?|grad\w*"
        r"|weights?)"
        r"\b.{0,40}(?:detected|found|encountered|stop|abort|exit|occurred))"
        r"|(?i:(?:found|detected|encountered) (?:a |an )?(?:nan|inf)\b)"
        r"|(?i:\b(?:nan|inf)\b (?:was )?(?:detected|found|encountered) in)"
        r"|(?i:(?:contains?|is|are|has|became) (?:either )?`?(?:nan|inf)\b)|[Nn]on-finite (?:loss|"
        r"grad\w*|value)|found invalid values|(?i:loss|gradients?).{0,40}(?:diverged|exploded)"
        r"|gradients.{0,60} is non-finite|(?:not|isn't) finite|Input contains (?:NaN|inf)",
        "The numbers overflowed: loss or gradients are not finite.",
        "Use bf16, a lower learning rate or gradient clipping, and resubmit from a checkpoint "
        "before it; or look at the data.",
    ),
    _rule(
        "checkpoint-mismatch",
        r"Error\(s\) in loading state_dict|^\s*(?:Missing|Unexpected) key\(s\) in state_dict"
        r"|size mismatch for \S+: copying a param|doesn't match the size of optimizer's group"
        r"|loaded state dict (?:has|contains) a (?:different|parameter)|DP world size of \d+ but"
        r"|[Cc]heckpoint .{0,80}(?:does not match|doesn't match|incompatible|mismatch)"
        r"|(?i:shape mismatch|size mismatch) .{0,60}(?:checkpoint|state_dict|param)"
        r"|Can't find a valid checkpoint at|Missing key in checkpoint|CheckpointException"
        r"|zero_to_fp32.*mismatch"
        r"|[Cc]annot load .{0,60}checkpoint .{0,40}(?:world size|ranks|partition)",
        "The checkpoint does not fit the model.",
        "Load it with the model's settings of that run, or begin without it.",
    ),
    _rule(
        "unused-parameters",
        r"Expected to have finished reduction in the prior iteration"
        r"|keyword argument `?find_unused_param"
        r"|[Pp]arameters? (?:which|that) (?:did|were) not (?:receive|used).{0,30}(?:grad|loss)"
        r"|[Pp]arameter indices which did not receive grad",
        "Some parameters of the model got no gradient, and DDP waited for them.",
        "Use all of them in the loss, or pass find_unused_parameters=True to DDP.",
    ),
    _rule(
        "marked-twice",
        r"Expected to mark a variable ready only once|marked as ready twice",
        "DDP met a parameter twice in one backward pass: shared, or with re-entrant checkpoints.",
        "Use checkpointing with use_reentrant=False, or pass static_graph=True to DDP.",
    ),
    _rule(
        "device-mismatch",
        r"Expected all tensors to be on the same device|should be the same (?:as|type).{0,40}"
        r"(?:cuda|cpu)|Input type \(torch\.cuda\.\w+\) and (?:weight|bias) type \(torch\.\w+\)"
        r"|Input type \(torch\.\w+\) and (?:weight|bias) type \(torch\.cuda"
        r"|should be either on \S+ or on the same device|Expected a cuda device, but got"
        r"|tensors? (?:is|are|found) on different dev"
        r"|module must have its parameters .{0,40}on device",
        "A calculation got tensors of different devices.",
        "Move the model and each batch to the rank's own device before they are used.",
    ),
    _rule(
        "dtype-mismatch",
        r"[Ee]xpected (?:scalar type|m1 and m2|mat1 and mat2|dtype|.{0,40}same dtype).{0,60}(?:but|"
        r"dtype|got)|mat1 and mat2 must have the same dtype|\"\w+\" not implemented for '\w+'"
        r"|Input type \((.{1,40})\) and (?:weight|bias) type|destination dtypes match"
        r"|[Ee]xpected .{0,40}same dtype",
        "A calculation got numbers of different precisions, or of one that it does not know.",
        "Run the model under torch.autocast, or convert the inputs to the model's precision.",
    ),
    _rule(
        "shape-mismatch",
        r"shapes cannot be multiplied|size of tensor a \(\d+\) must match|[Ss]izes of tensors must "
        r"match|invalid for input of size|[Ss]hape mismatch: value|stack expects each tensor"
        r"|[Ee]xpected input batch_size \(\d+\) to match|could not be broadcast together"
        r"|to have \d+ channels, but got|expanded size of the tensor \(\d+\) must match"
        r"|size mismatch, (?:m1|got)|[Ee]xpected \d+D .{0,40}input",
        "A calculation got tensors whose shapes do not fit.",
        "Look at that line of the code, and print the shapes of the batch before it.",
    ),
    _rule(
        "autograd",
        r"modified by an inplace operation|backward through the graph a second time"
        r"|does not require grad and does not have a grad_fn",
        "The backward pass cannot be computed from what the program did before it.",
        "Look at that line of the code: what is changed in place, detached or used twice?",
    ),
    _rule(
        "indivisible",
        r"world.?size.{0,60}divisible|(?:must|should|has to) be (?:evenly )?divisible by"
        r"|(?:is|are) not (?:evenly )?divisible by|mpiSize == tp \* pp",
        "Two numbers of the configuration do not divide, such as ranks and parallel sizes.",
        "Choose nodes and parallel sizes so that their product is the number of ranks.",
    ),
    _rule(
        "division-by-zero",
        r"ZeroDivisionError",
        "The program divided by zero.",
        "Look at that line of the code: often a data set or a loader is empty on that rank.",
    ),
    _rule(
        "data-worker",
        r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) exited unexpectedly|Pin memory thread exited"
        r"|background workers are no longer alive|worker.{0,20}died unexpect",
        "A worker of the data loader ended without a word.",
        "Set num_workers=0 once to see its error; use fewer workers if memory is the reason.",
    ),
    _rule(
        "usage",
        r"^[\w./-]+: error: (?P<what>(?:unrecognized|ambiguous|argument|the following|invalid).+)"
        r"|^[\w.-]+\.py: error: (?P<other>.+)|^Error: (?P<click>(?:No such option|Missing option"
        r"|Invalid value|Got unexpected).+)|^(?:ddp|fsdp|deepspeed_zero|lightning_trainer)\.py: "
        r"(?P<said>.+)|(?P<hydra>Could not override '.+|ConfigCompositionException.*"
        r"|ConfigAttributeError: .+|MissingConfigException: .+)"
        r"|(?i:error\b.{0,60}: |^)(?P<flag>(?:unknown|unrecognized|invalid) (?:shorthand )?(?:flag|"
        r"option)\b.+)|(?P<absl>Unknown command line flag .+)"
        r"|ValueError: (?P<hf>Some specified arguments are not used.+)",
        "The program refused to start: {what}.",
        "Fix what the line names, usually in `args:`.",
    ),
)
"""The model, its numbers and its data."""

LOSSES: tuple[LogRule, ...] = (
    _rule(
        "numerics",
        r"(?i:\bloss\b[\"']?\s*[:=]?\s*[\"']?(?:nan|inf)\b)",
        "The loss is not finite in the last steps that the log shows.",
        "Use bf16, a lower learning rate or gradient clipping, and resubmit from a checkpoint "
        "before it; or look at the data.",
    ),
)
"""What a training prints and goes on: counts where nothing else does."""
