
# ---- What a job with `relaunch:` does besides, after the functions above (templates/job/relaunch.sh).

# lumitui_relaunch MOST LIMIT LEAD: restart a failed program at most MOST times in the same allocation,
# which lasts LIMIT seconds. LEAD seconds before its end, the program gets a stop request.
lumitui_relaunch() {
  relaunch=$1 launch=1 limit=$2
  spare=$(($3 + 60)) # Slurm's signal may come 60 s early, and a launch needs some time
  echo "$launch" >"$RUN_DIR/.launched" || true
}

# lumitui_launch_again: decide whether to restart the program, which ended with `rc`; print why, or why not.
lumitui_launch_again() {
  local rc=$rc rank=null oom=false failed=() why= step
  lumitui_failure "$before"
  if ((rc == 0)); then return 1; fi
  why=$(lumitui_is_no_fault "${failed[@]}") || true
  if [[ $why == quiet ]]; then return 1; fi
  if [[ -z $why ]]; then lumitui_can_launch; fi
  # After a cancel, which writes no exit file; or a signal that came meanwhile.
  if [[ -n $killed ]]; then lumitui_exit 143; fi
  if [[ -z $why && -n $stopped ]]; then why='it got a stop request'; fi
  if [[ -n $why ]]; then
    echo "lumitui: the program is not restarted: $why." >&2
    return 1
  fi
  step=$(lumitui_last_step)
  launch=$((launch + 1))
  # The last launch's port may be in TIME_WAIT. Other jobs on the node have ids near this one's.
  export MASTER_PORT=$((10000 + (MASTER_PORT - 10000 + 3571) % 10000))
  if [[ ${TORCH_FR_DUMP_TEMP_FILE:-} == "$RUN_DIR"/flight-* ]]; then
    TORCH_FR_DUMP_TEMP_FILE=$RUN_DIR/flight-$attempt-launch-$launch-rank-
  fi
  if [[ $rank =~ ^[0-9]+$ ]]; then rank="rank $rank"; else rank='the program'; fi
  echo "lumitui: launch $launch of $((relaunch + 1)): $rank ended with $rc${step:+ after step $step}; it restarts from its last checkpoint."
  before=$(wc -c <"$RUN_DIR/attempt-$attempt.out") || before=0
  echo "$launch" >"$RUN_DIR/.launched" || true
}

# lumitui_is_no_fault CODE...: print why the program would end the same way again; `quiet` if it has printed that itself.
lumitui_is_no_fault() {
  local code
  for code in "$rc" "$@"; do
    case $code in
      # wrong usage; stopped, and saved; diverged; overtaken
      2 | 85 | 86 | 87) echo quiet; return ;;
    esac
  done
  if [[ -n $stopped || -e $RUN_DIR/stop || -e $RUN_DIR/cancelled ]]; then
    echo 'it got a stop request'
  elif ((launch > relaunch)); then
    echo "it has used its $((relaunch + 1)) launches"
  elif [[ -z $(lumitui_saved_since "$RUN_DIR/.launched") ]]; then
    echo 'it saved nothing in checkpoints/ since its launch, so it would fail the same way'
  fi
}

# Print the last step in the metrics.
lumitui_last_step() {
  tail -c 100000 "$RUN_DIR/metrics.jsonl" 2>/dev/null |
    sed -n 's/.*"step": *\([0-9]\{1,15\}\)[,}].*/\1/p' | tail -n 1
}

# lumitui_can_launch: set `why` if the job no longer belongs to this attempt, has too little time, or lacks a node.
lumitui_can_launch() {
  local job= pause left
  for pause in 0 2 5 10 20; do
    sleep "$pause"
    if [[ -n $killed ]]; then lumitui_exit 143; fi
    if job=$(SLURM_TIME_FORMAT=%s scontrol show job "$SLURM_JOB_ID" 2>/dev/null); then break; fi
  done
  # Cancelled; or Slurm gave up this node, which came back while another attempt runs under the same id.
  if ! [[ "$job " =~ JobState=RUNNING[[:space:]] && "$job " =~ Restarts=$((attempt - 1))[[:space:]] ]]; then
    why='Slurm does not report that the job continues'
    return
  fi
  left=$((limit - SECONDS))
  if [[ $job =~ EndTime=([0-9]+)[[:space:]] ]]; then left=$((BASH_REMATCH[1] - $(date +%s))); fi
  if ((left <= spare)); then
    why="the job ends in $left s, too soon for another launch"
  elif ! lumitui_wait timeout -k 5 60 srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 true; then
    why='not all of its nodes answer'
  fi
}
