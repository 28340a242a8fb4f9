"""What lines say of files that are missing, damaged or locked, and of the hubs' downloads."""

from lumitui.app.explain.failure.rules.row import LogRule
from lumitui.app.explain.failure.rules.row import log_rule as _rule

FILES: tuple[LogRule, ...] = (
    _rule(
        "hub-auth",
        r"GatedRepoError|access(?: to)?(?: a| this)? (?:gated repo|model .{0,80}is restricted)"
        r"|(?:HTTPError|HTTPStatusError|HfHubHTTPError)\b.{0,20}40[13]\b|\b40[13] Client Error"
        r"|\b401 Unauthorized|\b403 Forbidden|<Response \[40[13]\]>|user is not logged in"
        r"|(?:Client|HTTP) ?error '?40[13]|[Ii]nvalid (?:user|username|HF|hf) ?(?:token"
        r"|or password)"
        r"|Invalid credentials in Authorization header|Cannot access gated repo"
        r"|api_key not configured|wandb\.errors\.(?:AuthenticationError|UsageError).{0,40}key"
        r"|(?i:not authori[sz]ed|unauthorized|authentication failed|permission denied to access)"
        r".{0,60}(?i:hub|repo|wandb|token|http|api)|LocalTokenNotFoundError"
        r"|(?:Token|token) is required|[Ii]nvalid API key"
        r"|wandb\S*Error: (?:[Pp]ermission denied|.{0,40}(?:Unauthorized|not have permission))",
        "A hub refused access: no token, or no right to that model or project.",
        "Ask for access on the model's page, and give the token with `secrets: [HF_TOKEN]`.",
    ),
    _rule(
        "hub-limit",
        r"\b429 (?:Client Error|Too Many)|Too Many Requests|[Rr]ate limit(?:ed)? (?:exceeded|hit)"
        r"|hit (?:the|your) .{0,20}rate limit",
        "A hub refused the download because too many requests came at once.",
        "Download on a login host first, or let only rank 0 do it; set HF_HUB_OFFLINE to 1.",
    ),
    _rule(
        "no-internet",
        r"Max retries exceeded with url|Errno 101\b|Network is unreachable|gaierror"
        r"|Temporary failure in name resolution|LocalEntryNotFoundError|OfflineModeIsEnabled"
        r"|[Cc]ould ?n[o']t connect to '?https|outgoing traffic has been disabled"
        r"|we cannot find the requested files|Couldn't find cache for |[Cc]ould not resolve host"
        r"|(?:urlopen error|URLError).{0,80}(?:Errno (?!111)|timed out|unreach)"
        r"|NewConnectionError|Failed to establish a new connection|ConnectTimeout|ReadTimeoutError"
        r"|[Ff]ailed to (?:connect to|reach) (?:https?://)?[\w.-]+\.(?:co|com|org|io|ai|net)\b"
        r"|Connection to [\w.-]+\.(?:co|com|org|io|ai|net) timed out|Cannot find the requested "
        r"files in the (?:disk )?cache|Can't load the .{0,60}offline|aiohttp.*ClientConnectorError"
        r"|Couldn't reach (?:https?:|the Hugging Face Hub|'[^']+' on the Hub)"
        r"|Offline mode is enabled"
        r"|Run initialization has timed out|certificate verify failed|dial tcp: |\bno such host\b"
        r"|No matching distribution found for|fatal: unable to access 'https?",
        "The program wanted a file from the internet, which it could not reach.",
        "Get it on a login host first: models and data (then set HF_HUB_OFFLINE to 1 in `env:`), "
        "or packages; for wandb set WANDB_MODE to offline, and `wandb sync` later.",
    ),
    _rule(
        "file-lock",
        r"unable to lock file|No locks available|H5FD_\w+_lock|database is locked"
        r"|\[Errno 3[78]\] |flock.{0,40}(?:failed|not (?:supported|implemented))"
        r"|OperationalError: locking protocol|Resource deadlock avoided|not appear to support flock"
        r"|(?:FileLock|filelock)\S*Timeout|Timeout: The file lock",
        "The file system refused to lock a file.",
        "Put the file on the node's /tmp (MIOpen: MIOPEN_USER_DB_PATH); for HDF5 set "
        "HDF5_USE_FILE_LOCKING to FALSE in `env:`.",
    ),
    _rule(
        "corrupt-file",
        r"PytorchStreamReader failed|invalid load key, '|Error while deserializing header"
        r"|UnpicklingError|BadZipFile|pickle data was truncated|Ran out of input|zlib\.error"
        r"|storage has wrong size: expected|failed finding central directory"
        r"|[Ff]ile might be corrupted|(?i:unexpected eof"
        r"|truncated "
        r"file|file is (?:truncated|corrupt))|cannot identify image file|not a (?:gzip|zip) file"
        r"|SafetensorError|(?:Metadata)?IncompleteBuffer|InvalidHeaderDeserialization|HeaderTooL"
        r"|[Bb]ad magic number|[Mm]agic bytes not found|Not an Arrow file|file signature not found"
        r"|JSONDecodeError|[Cc]hecksum (?:mismatch|error|failed)|md5 .{0,20}mismatch"
        r"|DataLossError|LZMAError|[Cc]orrupt input data|unexpected end of data"
        r"|[Nn]ot a gzipped file"
        r"|mmap length is greater than file size|[Uu]nable to load weights from pytorch checkpoint"
        r"|(?:expected value|EOF while parsing .{1,20}) at line \d+ column \d+"
        r"|NonMatchingChecksumError|NonMatchingSplitsSizesError|EOFError: (?!EOF when reading a l)",
        "A file is damaged or incomplete, often a checkpoint whose writing was cut.",
        "Take the checkpoint before it, or copy the file again.",
    ),
    _rule(
        "read-only",
        r"Read-only file system|attempt to write a readonly database|Errno 30\b|EROFS",
        "The program wrote into a file system that is read-only, such as the container's own.",
        "Point caches (HF_HOME, TRITON_CACHE_DIR, XDG_CACHE_HOME) and output to a folder of yours.",
    ),
    _rule(
        "permission",
        r"PermissionError: (?:\[Errno 13\] )?Permission denied(?:: (?P<what>\S+))?"
        r"|Errno 13\] Permission denied(?:: (?P<other>\S+))?|\[Errno 1\] Operation not permitted"
        r"|(?:execve\(\)|exec|line \d+|cannot (?:create|open|remove|access)\b.*|mkdir|bash|sh): "
        r"(?P<path>\S+): Permission denied|: Permission denied$|Error: Permission denied|EACCES"
        r"|errno = 13\b|couldn't chdir to [`'](?P<chdir>[^`']+)'+: Permission denied",
        "The program may not read or write a file: {what}.",
        "Point caches (HF_HOME, TRITON_CACHE_DIR, XDG_CACHE_HOME) and output to a folder of yours.",
    ),
    _rule(
        "file-system",
        r"Errno (?:5|16|70|107|108|116|121)\]|Stale (?:NFS )?file handle"
        r"|Cannot send after transport"
        r"|Remote I/O error|Errno (?:4|110)\] [\w ]+: '/|Transport endpoint is (?:not connected"
        r"|shut)|errno = 5\b"
        r"|^(?!.*(?:NET/(?:OFI|IB)|libfabric)).*(?<!ror:)(?i:input/output error)(?! - )",
        "The file system failed: it did not answer, or gave up a file that was open.",
        "Read the site's news; resubmit from the checkpoint, and write to another file system if "
        "it fails again.",
    ),
    _rule(
        "no-file",
        r"^\s*FileNotFoundError: (?:\[Errno 2\] )?(?:No such file or directory: )?(?P<what>\S.*)"
        r"|\[Errno 2\] No such file or directory: (?P<path>\S.*)"
        r"|can't open file (?P<script>.+): \[Errno 2\]|NotADirectoryError: .*: (?P<folder>\S+)"
        r"|(?P<hub>\S+) does not appear to have a file named|[Uu]nable to (?:synchronously )?open "
        r"file \((?:unable to open file: )?(?:name = )?'?(?P<h5>[^',)]+).*(?:errno = 2"
        r"|No such file)"
        r"|[Cc]an't load (?:tokenizer|config|feature|image|the model|the config|model)\w* for "
        r"(?P<model>\S+)|(?P<id>\S+) is not a local folder and is not a valid model"
        r"|(?P<incorrect>Incorrect path_or_model_id.*)|HFValidationError: (?P<repo>.+)"
        r"|Unable to find '?(?P<data>\S+)|Couldn't find (?:a dataset|any data) \S+ (?P<set>.+)"
        r"|DatasetNotFoundError: (?P<none>.+)|IsADirectoryError: .*: (?P<dir>\S+)"
        r"|Error no file named (?P<weights>.+)|OSError: No such file:? (?P<os>\S+)"
        r"|RepositoryNotFoundError: (?P<missing>.+)"
        r"|\b404 Client Error.* for url: (?!\S*wandb)(?P<url>\S+)",
        "A file or model does not exist: {what}.",
        "Write paths relative to `workdir:` in the run's copy of the project, or use `links:`.",
    ),
)
"""Files on the site, and what is downloaded."""

LATE_FILES: tuple[LogRule, ...] = (
    _rule(
        "no-file",
        r"couldn't chdir to [`'](?P<chdir>[^`']+)'+: No such file"
        r"|Unable to open file (?P<batch>\S+)$"
        r"|(?:line \d+|bash|sh|cd|cat|cp|source|\.): (?P<what>[^\s:]\S*): No such file or directory"
        r"|cannot (?:stat|open|access) '?(?P<stat>[^':]+)'?: No such file"
        r"|[Nn]o such file or directory:? '?(?P<any>\S+)",
        "A file does not exist: {what}.",
        "Write paths relative to `workdir:` in the run's copy of the project, or use `links:`.",
    ),
    _rule(
        "no-command",
        r"(?:line \d+|bash|sh): (?P<what>[\w./-]+): (?:command )?not found",
        "The program {what} was not found.",
        "Check the container and the name of the interpreter; load the module that has it.",
    ),
)
"""What a shell says, and goes on: counts where nothing else does."""
