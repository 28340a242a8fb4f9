
# ---- What a job measures before its program starts: preflight and binding (templates/job/proof.sh).

# lumitui_measure LIMIT GRACE PORT LAUNCH...: run something in the program's place in the same launch, for at most LIMIT
# seconds. `ended`: its exit code, as timeout returns it; `said`: its error line. Whatever happens, the job continues.
lumitui_measure() {
  local limit=$1 grace=$2 port=$3 began=$SECONDS
  shift 3
  ended=0 said=
  export PROOF_DIR=$RUN_DIR/.proof-$attempt
  mkdir -p "$PROOF_DIR" || true
  (
    # Its own port: whatever a stopped step leaves behind must not block the launch.
    MASTER_PORT=$port
    export SIF CPU_BIND_MASKS
    # timeout cannot start a function, so a separate bash does; it outlives the signal, or a step
    # that is still ending would also block the launch. -p: no BASH_ENV.
    timeout -k "$grace" "$limit" bash -pc "
      trap : TERM
      srun() { command srun --overlap \"\$@\"; }
      $(declare -f launch)
      \"\$@\"" prove "$@"
  ) >"$PROOF_DIR/said" 2>&1 || ended=$?
  cat "$PROOF_DIR/said" || true
  # A killed rank also exits with 137.
  if ((ended == 137 && SECONDS - began >= limit)); then ended=124; fi
  if ((ended)); then
    said=$(grep -m 1 -E 'error:|fatal:|FATAL|Error:' "$PROOF_DIR/said" || tail -n 1 "$PROOF_DIR/said") || true
    said=$(tr -cd 'A-Za-z0-9 ._,:/()-' <<<"${said:0:300}") || true
  fi
}

# lumitui_preflight MODE LAUNCH...: check that the GPUs and the network of every rank are as fast as expected, within
# 30 s. MODE: `warn` or `end` the job. Without PyTorch, nothing is measured, and nothing ends.
lumitui_preflight() {
  local mode=$1 limit=25 state= why=
  shift
  rm -f "$RUN_DIR/preflight.json" || true
  lumitui_measure "$limit" 5 $((20000 + (MASTER_PORT + 5000) % 10000)) "$@" "--seconds=$((limit - 3))"
  state=$(sed -n 's/.*"state": "\([a-z ]*\)".*/\1/p' "$RUN_DIR/preflight.json" 2>/dev/null) || true
  why=$(sed -n 's/.*"state": "[a-z ]*", "why": "\([^"]*\)".*/\1/p' "$RUN_DIR/preflight.json" 2>/dev/null) || true
  # Without a verdict, rank 0 did not get that far: it never began, or something ended or blocked it.
  case $state in
    good | bad | 'not run') ;;
    *)
      if [[ -n $state ]]; then state=bad; else state='not run'; fi
      why="it ended with $ended${said:+: $said}"
      if ((ended == 124)) && [[ $state == bad ]]; then why="it did not end within $limit s"; fi
      if ((ended == 124)) && [[ $state != bad ]]; then why="it did not begin within $limit s"; fi
      case $said in *'No module named'*torch*) why='no torch' ;; esac
      printf '{"state": "%s", "why": "%s"}\n' "$state" "$why" >"$RUN_DIR/preflight.json" || true
      ;;
  esac
  case $state in
    good) ;;
    'not run') echo "lumitui: preflight not run: $why." >&2 ;;
    *)
      if [[ $mode == end ]]; then
        echo "lumitui: preflight: $why; nothing was launched." >&2
        strict=79
      else
        echo "lumitui: preflight: $why; the job continues." >&2
      fi
      ;;
  esac
  ended=0 said=
}

# lumitui_prove LAUNCH...: measure the binding of every rank with the probe.
lumitui_prove() {
  local limit=60 grace=15 probe
  lumitui_measure "$limit" "$grace" $((MASTER_PORT + 10000)) "$@"
  probe=$ended
  if ((probe)); then echo "lumitui: the probe ended with $probe; the binding is not proven." >&2; fi
  lumitui_report
}

# Write binding.json: the ranks' reports, how the probe ended if it failed, and the preflight. Written only
# once: a client that has read it does not read it again.
lumitui_report() {
  {
    echo '[' &&
      {
        cat "$PROOF_DIR"/rank-* 2>/dev/null || true
        if ((ended)); then printf '{"probe": %d, "said": "%s"}\n' "$ended" "$said"; fi
        sed '1!d; s/^/{"preflight": /; s/$/}/' "$RUN_DIR/preflight.json" 2>/dev/null || true
      } | sed '$!s/$/,/' &&
      echo ']'
  } >"$RUN_DIR/.binding.json" && mv -f "$RUN_DIR/.binding.json" "$RUN_DIR/binding.json" ||
    echo "lumitui: binding.json could not be written; the binding is not proven." >&2
  rm -rf "$PROOF_DIR" || true
  unset PROOF_DIR
}

# lumitui_require NODES CORES...: `proof: strict`. On this many nodes, each local rank must have its CORES, the ranks
# must fill one node after the other, and each must see its own GPU, or all the same list in order; otherwise nothing
# is launched.
lumitui_require() {
  local nodes=$1 each=$(($# - 1)) rank=0 right cores gpus
  shift
  for cores; do
    right=$(grep "\"local_rank\": $rank," "$RUN_DIR/binding.json" | grep -cF "\"cores\": \"$cores\"") || true
    if [[ $right != "$nodes" ]]; then
      echo "lumitui: local rank $rank has its cores $cores on ${right:-0} of $nodes nodes; nothing was launched." >&2
      strict=78
    fi
    rank=$((rank + 1))
  done
  while read -r rank right; do
    ((rank % each != right)) || continue
    echo "lumitui: rank $rank is local rank $right, planned $((rank % each)); nothing was launched." >&2
    strict=78
  done < <(sed -n 's/.*"rank": \([0-9]*\), "local_rank": \([0-9]*\),.*/\1 \2/p' "$RUN_DIR/binding.json")
  gpus=$(sed -n 's/.*"local_rank": \([0-9]*\),.*"gpus": "\([^"]*\)".*/\1 \2/p' "$RUN_DIR/binding.json") || true
  if grep -qvxE '([0-9]+) \1' <<<"$gpus"; then
    gpus=$(cut -d ' ' -f 2 <<<"$gpus" | sort -u)
    if [[ $gpus == *$'\n'* ]]; then
      echo "lumitui: not all ranks see the same GPUs; nothing was launched." >&2
      strict=78
    elif [[ $gpus != *[!0-9,]* && $(tr , '\n' <<<"$gpus" | sort -nu | tr '\n' ,) != "$gpus," ]]; then
      echo "lumitui: all ranks see the GPUs $gpus, not in order; nothing was launched." >&2
      strict=78
    fi
  fi
}

# lumitui_require_gpus NODES RANKS BUS...: `proof: strict`, beside lumitui_require. On this many nodes, the driver must
# show each local rank a GPU: the one on its PCI bus, or any if no BUS is known.
lumitui_require_gpus() {
  local nodes=$1 ranks=$2 rank=0 bus found right
  shift 2
  for ((; rank < ranks; rank++)); do
    bus=${1:-}
    shift $(($# > 0))
    found=$(sed -n "s/.*\"local_rank\": $rank,.*\"device\": \"\([^\"]*\)\".*/\1/p" "$RUN_DIR/binding.json") || true
    # An ADDRESS has colons: 0000:c1:00.0, or the bus alone.
    if [[ $bus == *:* ]]; then right=$(grep -cxF -- "$bus" <<<"$found"); else right=$(grep -cF -- ":$bus${bus:+:}" <<<"$found"); fi || true
    [[ $right != "$nodes" ]] || continue
    echo "lumitui: the driver shows local rank $rank ${bus:+its }GPU${bus:+ }$bus on ${right:-0} of $nodes nodes; nothing was launched." >&2
    strict=78
  done
}
