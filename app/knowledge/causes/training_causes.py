"""Meanings of log lines from PyTorch, DeepSpeed and trainers about the training itself."""

from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.meanings import log_rule as _rule

TRAINING: tuple[LogRule, ...] = (
    _rule(
        "batch-triangle",
        r"Check batch related parameters|train_batch_size is not equal to"
        r"|batch size .{0,40}(?:must be|is not|not) divisible"
        r"|(?:train|global|total)_batch_size .{0,60}(?:divisible|match|equal)"
        r"|micro.?batch.{0,80}(?:divisible|not equal|must)"
        r"|DeepSpeed config values that mismatch TrainingArguments"
        r"|(?i:batch_?size\w*\b.{0,60}divisible)",
        "The batch sizes contradict each other for this number of ranks.",
        "train_batch_size must be micro batch x accumulation x ranks; give DeepSpeed's "
        "configuration as `deepspeed: {config: …}` and lumitui recomputes it.",
    ),
    _rule(
        "two-precisions",
        r"bfloat16 and fp16 modes cannot be simultaneously enabled"
        r"|[Aa]t most one of fp16 and bf16 can be True|only one of .{0,20}fp16.{0,20}bf16"
        r"|(?i:\b(?:bf16|bfloat16|fp16|float16)\b.{0,30}\b(?:and|or)\b.{0,30}\b(?:bf16|bfloat16"
        r"|fp16|float16)\b.{0,60}\b(?:both|simultaneous\w*|same time|exclusive|only one)\b)"
        r"|(?i:\b(?:both|one of|not both)\b.{0,30}\b(?:bf16|fp16)\b.{0,30}\b(?:and"
        r"|or)\b.{0,30}\b(?:bf16|fp16)\b)",
        "The configuration enables both fp16 and bf16.",
        "Keep one of them.",
    ),
    _rule(
        "numerics",
        r"[Ll]oss scale already at minimum|Minimum loss scale reached"
        r"|[Ll]oss scale.{0,30}too small|(?i:floatingpointerror): (?:Minimum loss|Loss became|NaN)"
        r"|FloatingPointError|returned nan values in its \d+th output"
        r"|(?i:\bloss\b.{0,20}\bis\b.{0,20}\b(?:nan|inf)\b)"
        r"|(?i:(?:nan|inf(?:inite)?)(?: or (?:nan|inf))? (?:loss|gradients?|values?|grad\w*"
        r"|weights?)\b.{0,40}(?:detected|found|encountered|stop|abort|exit|occurred))"
        r"|(?i:(?:found|detected|encountered) (?:a |an )?(?:nan|inf)\b)"
        r"|(?i:\b(?:nan|inf)\b (?:was )?(?:detected|found|encountered) in)"
        r"|(?i:(?:contains?|is|are|has|became) (?:either )?`?(?:nan|inf)\b)"
        r"|[Nn]on-finite (?:loss|grad\w*|value)|found invalid values"
        r"|(?i:loss|gradients?).{0,40}(?:diverged|exploded)|gradients.{0,60} is non-finite"
        r"|(?:not|isn't) finite|Input contains (?:NaN|inf)|Tensor had (?:NaN|Inf)"
        r"|[Tt]raining (?:has )?diverged|infs or NaNs|invalid numeric entries"
        r"|matrix is ill-conditioned|input matrix contained non-finite"
        r"|(?i:\bloss (?:is|became|turned|went) (?:not finite|nan|inf\w*)\b)",
        "Numbers overflowed: the loss or gradients are not finite.",
        "Use bf16, a lower learning rate or gradient clipping, and resubmit from an earlier "
        "checkpoint; or inspect the data.",
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
        r"|[Cc]annot load .{0,60}checkpoint .{0,40}(?:world size|ranks|partition)"
        r"|Key \S+ not found in checkpoint|Assign requires shapes of both tensors to match"
        r"|Trying to set a tensor of shape|checkpoint was saved with a different"
        r"|value from checkpoint .{0,40}not equal|[Ss]ize mismatch between saved"
        r"|checkpoint saved with a different|state dictionary of the model"
        r"|(?:saved|checkpoint) .{0,40}world size .{0,60}(?:different|but|not)"
        r"|(?i:checkpoint\b.{0,60}\b(?:saved|used) (?:with|a)\b.{0,60}\b(?:parallel|world) size)",
        "The checkpoint does not match the model.",
        "Load it with the model settings of the run that saved it, or start without it.",
    ),
    _rule(
        "unused-parameters",
        r"Expected to have finished reduction in the prior iteration"
        r"|keyword argument `?find_unused_param"
        r"|[Pp]arameters? (?:which|that) (?:did|were) not (?:receive|used).{0,30}(?:grad|loss)"
        r"|[Pp]arameter indices which did not receive grad",
        "Some model parameters got no gradient, and DDP waited for them.",
        "Use all parameters in the loss, or pass find_unused_parameters=True to DDP.",
    ),
    _rule(
        "marked-twice",
        r"Expected to mark a variable ready only once|marked as ready twice",
        "DDP used a parameter twice in one backward pass, because of a shared parameter or "
        "re-entrant checkpointing.",
        "Use checkpointing with use_reentrant=False, or pass static_graph=True to DDP.",
    ),
    _rule(
        "device-mismatch",
        r"Expected all tensors to be on the same device"
        r"|should be the same (?:as|type).{0,40}(?:cuda|cpu)"
        r"|Input type \(torch\.cuda\.\w+\) and (?:weight|bias) type \(torch\.\w+\)"
        r"|Input type \(torch\.\w+\) and (?:weight|bias) type \(torch\.cuda"
        r"|should be either on \S+ or on the same device|Expected a cuda device, but got"
        r"|tensors? (?:is|are|found) on different dev"
        r"|module must have its parameters .{0,40}on device"
        r"|Expected object of (?:device type|backend) \w+ but got"
        r"|can't convert \w+(?::\d+)? device type tensor to numpy"
        r"|only dense CPU tensors can be pinned|cannot be accessed from Triton"
        r"|Expected a '\w+' device type for generator|must be on the current device"
        r"|is on CPU, but expected|expected both inputs to be on same device"
        r"|(?i:inputs?|tensors?|weights?) (?:must|should) be on (?:cuda|the same device|GPU)"
        r"|expected (?:it|them|all) to be on (?:GPU|cuda|the same)",
        "An operation got tensors on different devices.",
        "Move the model and each batch to the rank's own device before you use them.",
    ),
    _rule(
        "dtype-mismatch",
        r"[Ee]xpected (?:scalar type|m1 and m2|mat1 and mat2|dtype|.{0,40}same dtype).{0,60}(?:but"
        r"|dtype|got)|mat1 and mat2 must have the same dtype|\"\w+\" not implemented for '\w+'"
        r"|Input type \((.{1,40})\) and (?:weight|bias) type|destination dtypes match"
        r"|[Ee]xpected .{0,40}same dtype|Found dtype \w+ but expected"
        r"|result type \w+ can't be cast|to have one of the following scalar types"
        r"|FlashAttention only support fp16|can't convert np\.ndarray of type"
        r"|must have (?:the )?same dtype|[Aa]ttempting to unscale FP16"
        r"|expected \w+ (?:Tensor|tensor) but (?:got|found) \w+"
        r"|have incompatible (?:dtypes|data types)|[Uu]nsupported (?:dtype|data type)",
        "An operation got tensors of different or unsupported precisions.",
        "Run the model under torch.autocast, or convert the inputs to the model's precision.",
    ),
    _rule(
        "shape-mismatch",
        r"shapes cannot be multiplied|size of tensor a \(\d+\) must match"
        r"|[Ss]izes of tensors must match|invalid for input of size|[Ss]hape mismatch: value"
        r"|stack expects each tensor|[Ee]xpected input batch_size \(\d+\) to match"
        r"|could not be broadcast together|to have \d+ channels, but got"
        r"|expanded size of the tensor \(\d+\) must match|size mismatch, (?:m1|got)"
        r"|[Ee]xpected \d+D .{0,40}input|could not broadcast input array"
        r"|Expected hidden\[\d\] size|input array dimensions .{0,60}must match"
        r"|resize storage that is not resizable|input\.size\(-1\) must be equal"
        r"|operands do not broadcast|Incompatible shapes|Shapes \(.{1,60} are incompatible"
        r"|same number of dimensions: got|must be the same as input size"
        r"|Kernel size can't be greater|split_sizes to sum exactly|Dimension out of range"
        r"|contracting dimensions|more than 1 value per channel"
        r"|(?<![Ff]ile )(?i:(?:shape|dimension|size)s? (?:mismatch|do not match|must match"
        r"|don't match|not aligned))|inhomogeneous shape|cannot reshape (?:array|tensor) of"
        r"|different number of dimensions|Dimensions must be equal",
        "An operation got tensors whose shapes do not match.",
        "Inspect that line of the code, and print the shapes of the batch before it.",
    ),
    _rule(
        "autograd",
        r"modified by an inplace operation|backward through the graph a second time"
        r"|does not require grad and does not have a grad_fn|a leaf Variable that requires grad"
        r"|differentiated Tensors appears to not|implicitly created only for scalar"
        r"|on Tensor that requires grad",
        "PyTorch cannot compute the backward pass from the operations before it.",
        "Inspect that line of the code: is something changed in place, detached or used twice?",
    ),
    _rule(
        "indivisible",
        r"world.?size.{0,60}divisible|(?:must|should|has to) be (?:evenly )?divisible by"
        r"|(?:is|are) not (?:evenly )?divisible by|mpiSize == tp \* pp|% \w+ == 0\b"
        r"|not divisible\b|must be (?:a |an integer )?multiple of",
        "One number in the configuration is not divisible by another, such as the number of "
        "ranks by a parallel size.",
        "Choose nodes and parallel sizes so that the product of the sizes is the number of ranks.",
    ),
    _rule(
        "division-by-zero",
        r"ZeroDivisionError",
        "The program divided by zero.",
        "Inspect that line of the code: often, a data set or loader is empty on that rank.",
    ),
    _rule(
        "data-worker",
        r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) exited unexpectedly|Pin memory thread exited"
        r"|background workers are no longer alive|worker.{0,20}died unexpect"
        r"|DataLoader timed out after|[Ww]orkers? exited unexpectedly",
        "A data-loader worker ended without an error message.",
        "Set num_workers=0 once to see its error; if it ran out of memory, use fewer workers.",
    ),
    _rule(
        "usage",
        r"^[\w./-]+: error: (?P<what>(?:unrecognized|ambiguous|argument|the following|invalid).+)"
        r"|^[\w.-]+\.py: error: (?P<other>.+)"
        r"|^Error: (?P<click>(?:No such option|Missing option|Invalid value|Got unexpected).+)"
        r"|^(?:ddp|fsdp|deepspeed_zero|lightning_trainer)\.py: (?P<said>.+)"
        r"|(?P<hydra>Could not override '.+|ConfigCompositionException.*|ConfigAttributeError: .+"
        r"|MissingConfigException: .+)"
        r"|(?i:error\b.{0,60}: |^)(?P<flag>(?:unknown|unrecognized|invalid) (?:shorthand )?(?:flag"
        r"|option)\b.+)|(?P<absl>Unknown command line flag .+)"
        r"|ValueError: (?P<hf>Some specified arguments are not used.+)"
        r"|[Uu]nrecognized options?:? (?P<tyro>.+)|(?P<fire>Could not consume arg.+)"
        r"|(?:^|: )error: (?P<argument>argument .+|Validation failed.+|the following arguments.+)"
        r"|(?P<json>Parser key .+ [Dd]oes not validate.*)|(?P<missing>Missing mandatory value.+)"
        r"|(?P<extra>[Gg]ot unexpected extra argument.*)",
        "The program refused to start: {what}.",
        "Fix the mistake in that line, usually in `args:`.",
    ),
)
"""Errors of the model, its numbers and its data."""

LOSSES: tuple[LogRule, ...] = (
    _rule(
        "numerics",
        r"(?i:\bloss\b[\"']?\s*[:=]?\s*[\"']?(?:nan|inf)\b)",
        "The loss is not finite in the last steps of the log.",
        "Use bf16, a lower learning rate or gradient clipping, and resubmit from an earlier "
        "checkpoint; or inspect the data.",
    ),
)
"""Lines that a training run prints before it continues: count only without other causes."""
