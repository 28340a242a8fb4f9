"""The keys of a job file whose values are mappings: container, scale, stage and others."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from lumitui.app.job.fields.text_fields import Inside, Line, ShortForm, check_secret_name

StageName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]{0,30}$")]
"""The name of a staged item, as part of a variable name."""


def _only_path(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


def _only_runs(value: object) -> object:
    return {"run": value} if isinstance(value, str | list) else value


def _only_webhook(value: object) -> object:
    return {"webhook": value} if isinstance(value, str) else value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


class MappingField(BaseModel):
    """The base of every part of a job file: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ContainerChoice(MappingField):
    """Which container the ranks run in; `none: true` for none."""

    generation: Line | None = None
    """A group of images in the site's profile, with its modules and command: `container:
    {generation: legacy}`. Default: the profile's."""
    image: Line | None = None
    """Another image: an absolute path on the site, or a staged image: `container: {image:
    /scratch/project_462000000/torch.sif}`."""
    binds: tuple[Line, ...] = ()
    """Further bind mounts, as `SRC[:DST[:OPTIONS]]`: `container: {binds:
    [/scratch/data:/data:ro]}`."""
    venv: Line | None = None
    """A squashed Python environment (`.sqsh`) on the cluster, mounted over the image's own:
    `container: {venv: /scratch/project_462000000/extra.sqsh}`."""
    none: bool = False
    """Run without a container, with the site's modules: `container: {none: true}`."""


class DeepSpeedChoice(MappingField):
    """DeepSpeed's configuration."""

    config: Inside
    """A file in the project, in HJSON; the run gets a copy with the batch recomputed: `deepspeed:
    {config: ds_config.json}`."""


When = Literal["done", "failed", "any"]
"""How a job must end before one that waits for it starts."""


class After(MappingField):
    """The runs that must end before a job starts."""

    run: Annotated[tuple[Line, ...], BeforeValidator(_listed), ShortForm(), Field(min_length=1)]
    """Runs at the same site: ids, job names (their newest runs) or `last`: `after: {run:
    vit-1n}`."""
    when: When = "done"
    """How all of these runs must end: `after: {run: vit-1n, when: any}`."""


AfterShort = Annotated[After, BeforeValidator(_only_runs), ShortForm(or_list=True)]
"""`after:` in its forms: a run, a list of runs, or a mapping."""


FollowerName = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$")]
"""The name of a following job, used as the suffix of its job's name."""


class Follower(MappingField):
    """A following job: `when`, and the keys of the job file that differ."""

    model_config = ConfigDict(frozen=True, extra="allow")  # `follower` checks the others

    when: When = "done"
    """How the job before it must end: `then: {clean: {script: clean.sh, when: any}}`."""

    @property
    def own(self) -> dict[str, object]:
        """The follower's keys of the job file."""
        return dict(self.model_extra or {})


class NotifyChoice(MappingField):
    """The recipients of a message at the end of the job, with the laptop off."""

    webhook: str | None = None
    """The laptop variable with the address to which the job POSTs one line: `notify:
    {webhook: NTFY_URL}`."""
    format: Literal["text", "json"] = "text"
    """How the line is sent: as `text`, for ntfy, or as `json` with the key `text`, for Slack,
    Mattermost and Matrix: `notify: {webhook: SLACK_URL, format: json}`."""
    mail: Annotated[str, Field(pattern=r"^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,190}$")] | None = (
        None
    )
    """The address to which Slurm sends mail, if the site supports it:
    `notify: {mail: me@example.org}`."""

    @field_validator("webhook")
    @classmethod
    def _a_name(cls, value: str | None) -> str | None:
        if value is not None:
            check_secret_name(value)
        return value

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.webhook is None and self.mail is None:
            raise ValueError("give `webhook:` or `mail:`")
        return self


NotifyShort = Annotated[NotifyChoice, BeforeValidator(_only_webhook), ShortForm()]
"""`notify:` as a user writes it: the name of a variable, or keys."""


class BatchRule(MappingField):
    """How the batch changes with the number of ranks."""

    arg: Line | None = None
    """The argument that sets the samples per step: `scale: {batch: {arg: --batch-size}}`. Default:
    the trainer's, or DeepSpeed's."""
    arg_is: Literal["per_gpu", "global"] = "per_gpu"
    """Whether the value of `arg` is the samples of each rank (`per_gpu`) or of all ranks together
    (`global`): `scale: {batch: {arg: --batch-size, arg_is: global}}`."""
    keep: Literal["per_gpu", "global"] = "global"
    """What stays constant when the number of ranks changes: the samples per step of each rank
    (`per_gpu`) or of all ranks (`global`): `scale: {batch: {keep: per_gpu}}`."""

    @model_validator(mode="after")
    def _an_argument(self) -> Self:
        if self.arg_is == "global" and self.arg is None:
            raise ValueError("`arg_is: global` needs `arg:`, the argument that it describes")
        return self


class LearningRateRule(MappingField):
    """How the learning rate changes with the global batch."""

    arg: Line | None = None
    """The argument that sets the learning rate: `scale: {lr: {arg: --lr}}`. Default: the trainer's,
    or DeepSpeed's."""
    rule: Literal["none", "linear", "sqrt"] = "none"
    """How the learning rate follows the global batch: unchanged (`none`), in proportion
    (`linear`), or as its square root (`sqrt`): `scale: {lr: {rule: linear}}`."""


class Scale(MappingField):
    """What a resubmission on more nodes changes; by default neither global batch nor rate."""

    batch: BatchRule = BatchRule()
    """How the samples per rank change: `scale: {batch: {keep: global}}`."""
    lr: LearningRateRule = LearningRateRule()
    """How the learning rate changes: `scale: {lr: {rule: sqrt}}`."""


class StagedPath(MappingField):
    """Data, a model or an image that is uploaded once, and that all runs of a site share."""

    path: Line
    """A file or folder on your machine, relative to the project or below `~`: `stage: {DATA:
    {path: ~/mnist}}`."""
    link: Inside | None = None
    """A link to it below the code: `stage: {DATA: {path: ~/mnist, link: data/mnist}}`."""


StagedShort = Annotated[StagedPath, BeforeValidator(_only_path), ShortForm()]
"""An entry of `stage:` in its forms: a path, or a mapping."""
