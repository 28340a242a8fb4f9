# What lumitui does in a job besides running it. job.sh, beside this file in the run's folder, sources it
# and calls its functions. It is the same for every job, and only defines functions: sourcing it changes nothing.

# First, set the run's folder, this attempt's log, and the claim, so that a run is one job.
lumitui_begin() {
  umask 077
  strict= NODE_TMP= stops= chain= relaunch= compiled= stopped= killed=
  # If a shell startup file sets them, NONE would hide the job's variables from the ranks, and WORLD_SIZE mislead them.
  unset SLURM_EXPORT_ENV WORLD_SIZE LOCAL_WORLD_SIZE
  # A shell startup file may have changed the folder; sbatch was called in the run's folder.
  if [[ -d ${SLURM_SUBMIT_DIR:-}/attempt-1.submit && ! $SLURM_SUBMIT_DIR -ef $PWD ]]; then
    cd "$SLURM_SUBMIT_DIR"
  fi
  export RUN_DIR=$PWD
  attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
  # A requeued job writes its own log, and proves its binding again: its nodes may differ.
  if ((attempt > 1)); then
    rm -f "$RUN_DIR/binding.json" "$RUN_DIR/hung.json" "$RUN_DIR/preflight.json" || true
    exec >>"$RUN_DIR/attempt-$attempt.out" 2>&1
  fi
  # When a collective times out, PyTorch writes what each rank's collectives did. Older versions use
  # other names, about which later ones warn: the bundled trainers set them if needed.
  : "${TORCH_FR_BUFFER_SIZE:=2000}" "${TORCH_NCCL_DUMP_ON_TIMEOUT:=1}" "${TORCH_FR_DUMP_TEMP_FILE:=$RUN_DIR/flight-$attempt-rank-}"
  export TORCH_FR_BUFFER_SIZE TORCH_NCCL_DUMP_ON_TIMEOUT TORCH_FR_DUMP_TEMP_FILE
  # A second job of the same run ends here. A requeued job already has its claim.
  ln -s "$SLURM_JOB_ID" "$RUN_DIR/attempt-1.claim" 2>/dev/null || true
  local owner
  owner=$(readlink "$RUN_DIR/attempt-1.claim") || owner=
  if [[ $owner == "$SLURM_JOB_ID" ]]; then
    # A chain records it first (chain.sh).
    if ! declare -F lumitui_chain >/dev/null; then lumitui_heed_cancel; fi
    return 0
  fi
  if [[ -n $owner ]]; then
    echo "lumitui: attempt $attempt belongs to job $owner; job $SLURM_JOB_ID ends."
    lumitui_exit 0
  fi
  echo "lumitui: job $SLURM_JOB_ID cannot write to $RUN_DIR, so it does nothing. Is the disk or the quota full?"
  lumitui_exit 73
}

# A cancel creates the file `cancelled` if it came before the job began, or while an attempt requeued it. The attempt ends.
lumitui_heed_cancel() {
  if [[ ! -e $RUN_DIR/cancelled ]]; then return 0; fi
  echo "lumitui: the run was cancelled; attempt $attempt does nothing."
  lumitui_cancel_itself
  lumitui_exit 143
}

# By id and name: a controller that lost its state may have given the id to another job.
lumitui_cancel_itself() {
  scancel --name="$SLURM_JOB_NAME" "$SLURM_JOB_ID" && sleep 30 || true
}

# lumitui_stop_on SIGNAL: at sbatch's --signal=B:SIGNAL, create the file `stop`, which asks the trainer to save and end.
# It reaches the ranks of every launcher; torchrun kills its ranks 30 s after it gets a signal.
lumitui_stop_on() {
  rm -f "$RUN_DIR/stop" || true # an earlier attempt's
  trap 'signalled=yes stopped=yes; : >"$RUN_DIR/stop" || true' "$1"
  stops=yes
}

# A login shell runs ~/.bash_logout: under set -e, its failure would become the job's.
lumitui_exit() {
  set +e
  exit "$1"
}

# At any end of the script. The notification (notify.sh) comes first, because Slurm allows only half a minute.
lumitui_leave() {
  local code=$?
  if [[ -n ${told_site-} ]]; then lumitui_tell "$code"; fi
  if [[ -n $NODE_TMP ]]; then rm -rf "$NODE_TMP"; fi
}

# Export the values of `secrets:`, which no script and no record contains.
lumitui_secrets() {
  set -a
  . "$RUN_DIR/.secrets"
  set +a
}

# lumitui_venv: set VENV, the environment of `venv:`. It was built before the submission, or is built now.
lumitui_venv() {
  VENV=$(bash "$RUN_DIR/venv.sh") || lumitui_refuse "there is no environment for \`venv:\`"
}

# Run a command once on every node. --overlap: until a step has fully ended, the next one would get
# other cores and GPUs, or be refused ("Invalid generic resource").
lumitui_on_nodes() {
  srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "$@"
}

# lumitui_prepare TROUBLE COMMAND...: try a few times. A restarted slurmctld refuses steps for a while.
lumitui_prepare() {
  local trouble=$1 pause
  shift
  for pause in 5 10 20 40; do
    if "$@"; then return 0; fi
    echo "lumitui: $trouble; trying again in $pause s." >&2
    sleep "$pause"
  done
  "$@" || lumitui_refuse "$trouble"
}

# lumitui_refuse WHY: end the job before its launch.
lumitui_refuse() {
  echo "lumitui: $1; nothing was launched." >&2
  lumitui_exit 74
}

# lumitui_node_tmp PARENT [FOLDER...]: create NODE_TMP, the job's own folder on every node, with these folders in it.
lumitui_node_tmp() {
  # The job removes what it creates on its nodes.
  trap lumitui_leave EXIT
  # Without this trap, bash would remove it at once, while ranks save; with it, once srun has returned.
  trap 'lumitui_exit 143' TERM
  lumitui_prepare "a folder in $1 could not be made on every node" lumitui_make_node_tmp "$@"
}

# PARENT is shared, and another user could create the folder first; the name is therefore random, and each attempt
# uses a new one. A requeued job removes what its first attempt left.
lumitui_make_node_tmp() {
  local mine=$1/lumitui-${RUN_DIR##*/}-$SLURM_JOB_ID
  shift
  NODE_TMP=$(mktemp -u "$mine-$attempt-XXXXXXXXXX") || return
  lumitui_on_nodes bash -c '
    umask 077
    for old in "$1"-*; do [[ $old == "$2" || ! -O $old || -L $old ]] || rm -rf "$old"; done
    # Nodes with a common disk share it.
    if ! mkdir -m 700 "$2" 2>/dev/null && [[ ! -d $2 || ! -O $2 || -L $2 ]]; then
      echo "$(uname -n): $2 cannot be made, or belongs to another user" >&2
      exit 1
    fi
    cd "$2" && shift 2 && { (($# == 0)) || mkdir -p -- "$@"; }
  ' make "$mine" "$NODE_TMP" "$@"
}

# lumitui_run LAUNCH...: run the program, write its outcome to the exit file, and end the job.
lumitui_run() {
  local rc=0 before
  lumitui_heed_cancel
  before=$(wc -c <"$RUN_DIR/attempt-$attempt.out") || before=0
  if [[ -n $strict ]]; then
    rc=$strict
  else
    lumitui_launch "$@" || rc=$?
    # Only after the previous launch has returned.
    while [[ -n $relaunch ]] && lumitui_launch_again; do
      rc=0
      lumitui_launch "$@" || rc=$?
    done
  fi
  # Only after the launch has returned: a trap would also write the file for a killed job.
  lumitui_record "$before"
  # No longer needed. A job that failed may run again.
  if ((rc == 0)); then rm -f "$RUN_DIR/.secrets" || true; fi
  cd "$RUN_DIR"
  # Also if the chain continues: to the nodes, the next attempt is another job.
  if [[ -n $compiled ]] && ((rc == 0 || rc == 85)); then (lumitui_keep_compiled) || true; fi
  # The script's end removes this node's folder.
  if [[ -n $NODE_TMP ]] && ((SLURM_JOB_NUM_NODES > 1)); then
    timeout 60 srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 rm -rf "$NODE_TMP" || true
  fi
  if [[ -n $chain ]]; then lumitui_go_on || true; fi
  lumitui_exit "$rc"
}

# lumitui_saved_since FILE: print a newer file of a checkpoint. For a bundled trainer, only the manifest counts,
# which it writes last; names with a leading dot are created while a training run resumes.
lumitui_saved_since() {
  (cd "$RUN_DIR/checkpoints" && find . -type f -newer "$1" ! -path './.*' \
    \( -name manifest.json -o ! -path './start-*-step-*/*' \)) 2>/dev/null | head -n 1
}

lumitui_launch() {
  if [[ -n $stops || -n $relaunch ]]; then lumitui_wait "$@"; else "$@"; fi
}

# lumitui_wait LAUNCH...: run it so that bash handles a signal at once, which it does only between two
# commands, or while it waits for a background one.
lumitui_wait() {
  local child rc=0 signalled=
  # A cancelled job ends once its ranks have saved, and writes no exit file.
  trap 'signalled=yes killed=yes' TERM
  if [[ -n $killed ]]; then lumitui_exit 143; fi
  "$@" &
  child=$!
  while :; do
    rc=0 signalled=
    wait "$child" || rc=$?
    # Either the trap interrupted the wait, and the launch continues; or the launch has ended, and bash knows how.
    [[ -n $signalled ]] || break
  done
  if [[ -n $killed ]]; then lumitui_exit 143; fi
  return "$rc"
}

# lumitui_record BEFORE: write the exit file of a launch that began after this many bytes of the log.
lumitui_record() {
  local rank=null oom=false failed=() ended
  lumitui_failure "$1"
  ended=$(date +%s)
  printf '{"rc": %d, "rank": %s, "job": "%s", "attempt": %d, "started": %d, "ended": %d, "oom": %s}\n' \
    "$rc" "${rank:-null}" "$SLURM_JOB_ID" "$attempt" $((ended - SECONDS)) "$ended" "$oom" \
    >"$RUN_DIR/.exit-$attempt" &&
    mv "$RUN_DIR/.exit-$attempt" "$RUN_DIR/attempt-$attempt.exit" || true
}

# lumitui_failure BEFORE: set `rank`, `rc` and `oom` of the rank that failed first. srun returns the highest code;
# its first line about a task, after this many bytes of the log, shows which failed first, and how it ended.
lumitui_failure() {
  local first
  first=$(tail -c "+$(($1 + 1))" "$RUN_DIR/attempt-$attempt.out" | tail -c 1000000 |
    sed -n 's/^srun: error: [^:]*: tasks\{0,1\} \([0-9]\{1,\}\)[^:]*: /\1 /p' | head -n 1) || true
  if ((rc != 0)); then
    case ${first#* } in
      'Exited with exit code '*) rc=${first##* } ;;
      Aborted*) rc=134 ;;
      Killed*) rc=137 ;;
      'Out Of Memory'*) rc=137 oom=true ;;
      'Segmentation fault'*) rc=139 ;;
      Terminated*) first= ;; # from outside: no rank failed first
    esac
    # Only if a task is a rank: a launcher's task has no rank.
    if [[ -n ${WORLD_SIZE:-} ]]; then rank=${first%% *}; fi
    lumitui_launcher_failure "$1"
    # torchrun exits with 1, whatever its ranks exit with; the trainer's last event shows the stop.
    if [[ -n $chain ]] && lumitui_new_metrics | grep -q '"event": "stop"'; then rc=85; fi
  fi
}
