"""Meanings of log lines about missing, damaged or locked files, and about hub downloads."""

from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.meanings import log_rule as _rule

ABSENT = (
    "Check the path. If the file is on your computer, upload it with `stage: {DATA: PATH}` and "
    "write $STAGE_DATA in `args:`."
)
"""The fix for an absolute path; `no-file` has that for others."""

FILES: tuple[LogRule, ...] = (
    _rule(
        "hub-limit",
        r"\b429 (?:Client Error|Too Many)|Too Many Requests|[Rr]ate limit(?:ed)? (?:exceeded|hit)"
        r"|hit (?:the|your) .{0,20}rate limit|toomanyrequests"
        r"|(?i:rate.?limit\w* (?:error|exceeded|reached))|RateLimitError"
        r"|Too many users have viewed|SlowDown\b|reduce your request rate"
        r"|(?i:(?:error|status|http)(?: code)?:? 429\b)|\b429\b.{0,30}(?i:too many|rate)",
        "A hub refused the download because it received too many requests at once.",
        "Download on a login host first, or only on rank 0; set HF_HUB_OFFLINE to 1.",
    ),
    _rule(
        "hub-auth",
        r"GatedRepoError|access(?: to)?(?: a| this)? (?:gated repo|model .{0,80}is restricted)"
        r"|(?:HTTPError|HTTPStatusError|HfHubHTTPError)\b.{0,20}40[13]\b|\b40[13] Client Error"
        r"|\b401 Unauthorized|\b403 Forbidden|<Response \[40[13]\]>|user is not logged in"
        r"|(?:Client|HTTP) ?error '?40[13]"
        r"|[Ii]nvalid (?:user|username|HF|hf) ?(?:token|or password)"
        r"|Invalid credentials in Authorization header|Cannot access gated repo"
        r"|api_key not configured|wandb\.errors\.(?:AuthenticationError|UsageError).{0,40}key"
        r"|(?i:not authori[sz]ed|unauthorized|authentication failed"
        r"|permission denied to access).{0,60}(?i:hub|repo|wandb|token|http|api)"
        r"|LocalTokenNotFoundError|(?:Token|token) is required|[Ii]nvalid API key"
        r"|wandb\S*Error: (?:[Pp]ermission denied|.{0,40}(?:Unauthorized|not have permission))"
        r"|NoCredentialsError|[Uu]nable to locate credentials|DefaultCredentialsError"
        r"|InvalidAccessKeyId|\(AccessDenied\)|An error occurred \(40[13]\)"
        r"|could not read (?:Username|Password) for 'https?|Invalid\w*(?:API|Api)Key"
        r"|PERMISSION_DENIED|[Aa]ccess denied.{0,20}40[13]|kaggle\.json|HTTP Error 40[13]"
        r"|[Aa]uthentication (?:is )?required|Bad credentials|Permission denied \(publickey"
        r"|HTTP (?:status )?40[13]\b",
        "A hub refused access: no token, or no permission for that model or project.",
        "Request access on the model's page, and pass the token with `secrets: [HF_TOKEN]`.",
    ),
    _rule(
        "no-internet",
        r"^(?!.*host='(?:localhost|127\.)).*Max retries exceeded with url|Errno 101\b"
        r"|Network is unreachable|gaierror|Temporary failure in name resolution"
        r"|LocalEntryNotFoundError|OfflineModeIsEnabled|[Cc]ould ?n[o']t connect to '?https"
        r"|outgoing traffic has been disabled|we cannot find the requested files"
        r"|Couldn't find cache for |[Cc]ould not resolve host"
        r"|(?:urlopen error|URLError).{0,80}(?:Errno (?!111)|timed out|unreach)|NewConnectionError"
        r"|Failed to establish a new connection|ConnectTimeout|ReadTimeoutError"
        r"|[Ff]ailed to (?:connect to|reach) (?:https?://)?[\w.-]+\.(?:co|com|org|io|ai|net)\b"
        r"|Connection to [\w.-]+\.(?:co|com|org|io|ai|net) timed out"
        r"|Cannot find the requested files in the (?:disk )?cache|Can't load the .{0,60}offline"
        r"|aiohttp.*ClientConnectorError"
        r"|Couldn't reach (?:https?:|the Hugging Face Hub|'[^']+' on the Hub)"
        r"|Offline mode is enabled|Run initialization has timed out|certificate verify failed"
        r"|dial tcp: |\bno such host\b|No matching distribution found for"
        r"|fatal: unable to access 'https?"
        r"|requests\.exceptions\.(?:Connection|Proxy|SSL|Chunked\w+|Connect\w*|Read\w*)(?:Error"
        r"|Timeout)|EndpointConnectionError|CondaHTTPError|HTTP 000 CONNECTION"
        r"|unable to resolve host|failed to lookup address|dns error|error sending request for url"
        r"|Remote end closed connection without|\('Connection aborted\.'|\b50[0234] Server Error"
        r"|HTTP Error 50[0234]|curl: \((?:5|6|7|28|35|52|56|60)\)"
        r"|ssh: (?:connect to host (?!\d+\.)|Could not resolve)"
        r"|HTTPS?ConnectionPool\((?!host='(?:localhost|127\.|0\.0\.0\.0))"
        r"|problem confirming the ssl|unable to connect to github|NLTK Downloader|IncompleteRead"
        r"|wandb\.errors\S*\.?CommError|httpx\.(?:Connect|Read|Pool)\w+"
        r"|httpcore\.\w*(?:Connect|Timeout)\w*",
        "The program needed a file from the internet, but could not reach it.",
        "Download models, data or packages on a login host first; for models and data, also set "
        "HF_HUB_OFFLINE to 1 in `env:`. For wandb, set WANDB_MODE to offline, and run `wandb sync` "
        "later.",
    ),
    _rule(
        "file-lock",
        r"unable to lock file|No locks available|H5FD_\w+_lock|database is locked|\[Errno 3[78]\] "
        r"|flock.{0,40}(?:failed|not (?:supported|implemented))|OperationalError: locking protocol"
        r"|Resource deadlock avoided|not appear to support flock|(?:FileLock|filelock)\S*Timeout"
        r"|Timeout: The file lock|Errno 524\b|File locking failed|LockException"
        r"|(?i:(?:could not|unable to|failed to) acquire .{0,40}lock\b)",
        "The file system refused to lock a file.",
        "Put the file in the node's /tmp (MIOpen: MIOPEN_USER_DB_PATH); for HDF5, set "
        "HDF5_USE_FILE_LOCKING to FALSE in `env:`.",
    ),
    _rule(
        "corrupt-file",
        r"PytorchStreamReader failed|invalid load key, '|Error while deserializing header"
        r"|UnpicklingError|BadZipFile|pickle data was truncated|Ran out of input|zlib\.error"
        r"|storage has wrong size: expected|failed finding central directory"
        r"|[Ff]ile might be corrupted"
        r"|(?i:unexpected eof|truncated file|file is (?:truncated|corrupt))"
        r"|cannot identify image file|not a (?:gzip|zip) file|SafetensorError"
        r"|(?:Metadata)?IncompleteBuffer|InvalidHeaderDeserialization|HeaderTooL"
        r"|[Bb]ad magic number|[Mm]agic bytes not found|Not an Arrow file|file signature not found"
        r"|JSONDecodeError|[Cc]hecksum (?:mismatch|error|failed)|md5 .{0,20}mismatch|DataLossError"
        r"|LZMAError|[Cc]orrupt input data|unexpected end of data|[Nn]ot a gzipped file"
        r"|mmap length is greater than file size|[Uu]nable to load weights from pytorch checkpoint"
        r"|(?:expected value|EOF while parsing .{1,20}) at line \d+ column \d+"
        r"|NonMatchingChecksumError|NonMatchingSplitsSizesError|EOFError: (?!EOF when reading a l)"
        r"|pickled data when allow_pickle=False|[Ii]nvalid magic number|Consistency check failed"
        r"|ExpectedMoreDownloadedFiles|unexpected end of file|CRC (?:check |error|mismatch)"
        r"|(?i:\bcrc\b.{0,20}fail)|EOF inside string|EmptyDataError|storage has wrong byte size"
        r"|bad marshal data|cannot contain null bytes|data stream error|as a pickle$"
        r"|file too short|invalid ELF header"
        r"|(?<!\b0 )(?<!\bno )[Cc]orrupt(?:ed)? (?:file|record|checkpoint|archive|image|download"
        r"|JPEG|zip)"
        r"|(?i:(?:file|record|archive|image|checkpoint|index|cache)\b.{0,60}\b(?:is|are|was|be"
        r"|seems|appears to be) corrupt)|Unexpected end of (?:JSON|ZLIB|archive)"
        r"|[Ii]nvalid (?:zip|gzip|tar|parquet) (?:file|archive)|Premature (?:EOF|end of)",
        "A file is damaged or incomplete, often a checkpoint from an interrupted save.",
        "Use the previous checkpoint, or copy the file again.",
    ),
    _rule(
        "read-only",
        r"Read-only file system|attempt to write a readonly database|Errno 30\b|EROFS",
        "The program tried to write to a read-only file system, such as the container's own.",
        "Point caches (HF_HOME, TRITON_CACHE_DIR, XDG_CACHE_HOME) and output to one of your own "
        "folders.",
    ),
    _rule(
        "permission",
        r"PermissionError: (?:\[Errno 13\] )?Permission denied(?:: (?P<what>\S+))?"
        r"|Errno 13\] Permission denied(?:: (?P<other>\S+))?|\[Errno 1\] Operation not permitted"
        r"|(?:execve\(\)|exec|line \d+|cannot (?:create|open|remove|access)\b.*|mkdir|bash"
        r"|sh): (?P<path>\S+): Permission denied|: Permission denied$|Error: Permission denied"
        r"|EACCES|errno = 13\b|couldn't chdir to [`'](?P<chdir>[^`']+)'+: Permission denied"
        r"|[Pp]ermission denied \(os error 13\)|AccessDeniedException|PermissionDeniedError"
        r"|unable to open database file",
        "The program has no permission to read or write a file: {what}.",
        "Point caches (HF_HOME, TRITON_CACHE_DIR, XDG_CACHE_HOME) and output to one of your own "
        "folders.",
    ),
    _rule(
        "file-system",
        r"Errno (?:5|16|70|107|108|116|121)\]|Stale (?:NFS )?file handle"
        r"|Cannot send after transport|Remote I/O error|Errno (?:4|110)\] [\w ]+: '/"
        r"|Transport endpoint is (?:not connected|shut)|errno = 5\b"
        r"|^(?!.*(?:NET/(?:OFI|IB)|libfabric|OFI|cxi|ibv_|UCX"
        r"|\bfi_)).*(?<!ror:)(?i:input/output error)(?! - )|LustreError|Errno (?:103|112|117)\]"
        r"|(?i:stale (?:nfs )?file handle)|\.nfs[0-9a-f]+'|Structure needs cleaning|: Host is down",
        "The file system failed: it did not answer, or dropped an open file.",
        "Read the site's news, and resubmit from the checkpoint; if it fails again, write to "
        "another file system.",
    ),
    _rule(
        "no-file",
        r"^\s*FileNotFoundError: (?:\[Errno 2\] )?(?:No such file or directory: )?(?P<what>\S.*)"
        r"|\[Errno 2\] No such file or directory: (?P<path>\S.*)"
        r"|can't open file (?P<script>.+): \[Errno 2\]|NotADirectoryError: .*: (?P<folder>\S+)"
        r"|[Cc]an't load the configuration of '?(?P<conf>[^'\s]+)"
        r"|(?P<ckpt>\S+) is not a checkpoint file|(?P<hub>\S+) does not appear to have a file named"
        r"|[Uu]nable to (?:synchronously )?open file \((?:unable to open file: )?(?:name ="
        r" )?'?(?P<h5>[^',)]+).*(?:errno = 2|No such file)"
        r"|[Cc]an't load (?:tokenizer|config|feature|image|the model|the config"
        r"|model)\w* for (?P<model>\S+)|(?P<id>\S+) is not a local folder and is not a valid model"
        r"|(?P<incorrect>Incorrect path_or_model_id.*)|HFValidationError: (?P<repo>.+)"
        r"|Unable to find '?(?P<data>\S+)|Couldn't find (?:a dataset|any data) \S+ (?P<set>.+)"
        r"|DatasetNotFoundError: (?P<none>.+)|IsADirectoryError: .*: (?P<dir>\S+)"
        r"|Error no file named (?P<weights>.+)|OSError: No such file:? (?P<os>\S+)"
        r"|RepositoryNotFoundError: (?P<missing>.+)"
        r"|\b404 Client Error.* for url: (?!\S*wandb)(?P<url>\S+)"
        r"|NotFoundError: (?P<tf>[^;]{1,200}); No such file"
        r"|java\.io\.FileNotFoundException: (?P<java>.+)|EntryNotFoundError(?P<entry>.*)"
        r"|Dataset not found|Found 0 (?:files|images|videos) in (?P<zero>.+)"
        r"|^(?!\s*(?:Key|Attribute|Type|Name)Error)\s*[\w.]*(?:Error"
        r"|Exception): .{0,80}(?i:\b(?:path|file|folder|directory"
        r"|checkpoint)\b.{0,80}\b(?:does not exist|doesn't exist|do not exist|did not exist"
        r"|not found))(?P<exist>.*)|No such file or directory \(os error 2\)(?P<rust>.*)",
        "A file or model does not exist: {what}.",
        "Write paths relative to `workdir:` in the run's copy of the project, or use `links:`.",
    ),
)
"""Errors of files on the site and of downloads."""

LATE_FILES: tuple[LogRule, ...] = (
    _rule(
        "no-environment-module",
        r"(?:^|[\s:/])lmod: [Nn]o such file or directory",
        "The program behind the `module` command (lmod) is missing on the node or in the "
        "container.",
        "Load modules before the container starts; if the job inherited the login host's "
        "environment, submit it with `--export=NONE`.",
    ),
    _rule(
        "permission",
        r"[Pp]ermission denied(?!.*going to)"
        r"|^(?!.*cannot modify limit).*: Operation not permitted$",
        "The program has no permission to read or write a file: {what}.",
        "Point caches (HF_HOME, TRITON_CACHE_DIR, XDG_CACHE_HOME) and output to one of your own "
        "folders.",
    ),
    _rule(
        "no-file",
        r"couldn't chdir to [`'](?P<chdir>[^`']+)'+: No such file"
        r"|Unable to open file (?P<batch>\S+)$"
        r"|(?:line \d+|bash|sh|cd|cat|cp|source|\.): (?P<what>[^\s:]\S*): No such file or directory"
        r"|cannot (?:stat|open|access) '?(?P<stat>[^':]+)'?: No such file"
        r"|[Nn]o such file or directory:? '?(?P<any>\S+)"
        r"|Could not open std\w+ file (?P<slurm>[^:]+): No such file"
        r"|(?i:^(?:error: |fatal: )?(?:input |config |data |the )?(?:file|path"
        r"|directory) (?:does not exist|not found)):? ?(?P<said>.*)"
        r"|[Nn]o such file or directory \(os error 2\)"
        r"|^(?!(?:df|rm|du|stat|ls)\b|.*amdgpu\.ids).*: [Nn]o such file or directory$",
        "A file does not exist: {what}.",
        "Write paths relative to `workdir:` in the run's copy of the project, or use `links:`.",
    ),
    _rule(
        "no-command",
        r"(?:line \d+|bash|sh): (?P<what>[\w./-]+): (?:command )?not found",
        "The program {what} was not found.",
        "Check the container and the name of the interpreter; load the module that provides it.",
    ),
)
"""Shell errors after which the shell continues: count only without other causes."""
