
# ---- What a job with `chain:` does besides, after the functions above (templates/job/chain.sh).

# lumitui_chain LIMITS: the run may use this many time limits, all in one job: an attempt that exits
# with 85, "stopped, with the checkpoint saved", requeues its own job. Slurm runs a job only in one
# place at a time, so no two attempts run at once.
lumitui_chain() {
  chain=$1
  # Later metrics and newer files belong to this attempt.
  metrics_before=$(wc -c 2>/dev/null <"$RUN_DIR/metrics.jsonl") || metrics_before=0
  local alive before=$((attempt - 1))
  # A killed attempt recorded no end; its log shows how long it lived.
  alive=$(date -r "$RUN_DIR/attempt-$before.out" +%s 2>/dev/null) || alive=null
  # After a manual requeue or a node failure, record the previous attempt's end before this one begins.
  if grep -q "^{\"attempt\": $before, .*\"event\": \"began\"" "$RUN_DIR/attempts.jsonl" 2>/dev/null &&
    ! grep -q "^{\"attempt\": $before, .*\"event\": \"ended\"" "$RUN_DIR/attempts.jsonl"; then
    attempt=$before lumitui_note '"event": "ended", "rc": null, "step": null, "next": "killed"'
  fi
  lumitui_note "$(printf '"event": "began", "nodes": "%s", "alive": %s' \
    "$(tr -cd 'A-Za-z0-9,[]._-' <<<"$SLURM_JOB_NODELIST")" "$alive")"
  : >"$RUN_DIR/.began" || true
  if [[ -e $RUN_DIR/cancelled ]]; then
    # The cancel came while the last attempt requeued the job.
    lumitui_note '"event": "ended", "rc": 143, "step": null, "next": "cancelled"'
    lumitui_heed_cancel
  fi
  if ((attempt > chain)); then
    # Slurm itself requeued it, after a node failure or a preemption.
    local rc=85
    echo "lumitui: the run has used its $chain attempts; attempt $attempt does nothing." >&2
    lumitui_note '"event": "ended", "rc": 85, "step": null, "next": "used-up"'
    lumitui_record "$(wc -c <"$RUN_DIR/attempt-$attempt.out")"
    lumitui_exit 85
  fi
}

# lumitui_note FIELDS: append a line about this attempt to attempts.jsonl. A killed attempt may have left half a line.
lumitui_note() {
  local file=$RUN_DIR/attempts.jsonl feed=
  if [[ -n $(tail -c 1 "$file" 2>/dev/null) ]]; then feed='\n'; fi
  printf "$feed"'{"attempt": %d, "job": "%s", "time": %d, %s}\n' \
    "$attempt" "$SLURM_JOB_ID" "$(date +%s)" "$1" >>"$file" || true
}

# Print the end of what this attempt added to the metrics.
lumitui_new_metrics() {
  tail -c "+$((metrics_before + 1))" "$RUN_DIR/metrics.jsonl" 2>/dev/null | tail -c 1000000 || true
}

# lumitui_go_on: decide whether the chain continues after this attempt, which ended with `rc`; if so, requeue the job.
lumitui_go_on() {
  local step last next=requeue why=
  step=$(lumitui_new_metrics | sed -n 's/.*"step": *\([0-9]\{1,15\}\)[,}].*/\1/p' | tail -n 1)
  # Only saved steps count: a node that comes back may write a line about lost ones.
  last=$(sed -n 's/.*"step": \([0-9]\{1,15\}\), "next": "requeue".*/\1/p' "$RUN_DIR/attempts.jsonl" | tail -n 1)
  if ((rc == 0)); then
    next='done'
  elif ((rc != 85)); then
    next=failed
  elif ((attempt >= chain)); then
    next=used-up why="the run has used its $chain time limits"
  elif [[ -n $step ]] && ((10#$step <= 10#${last:-0})); then
    next=no-progress why="no step was trained after step ${last:-0}; another time limit would change nothing"
  elif [[ -n $(lumitui_saved_since "$RUN_DIR/.began") ]]; then
    : # it saved
  elif [[ -z $step ]]; then
    next=no-progress why="nothing was saved in checkpoints/; another time limit would change nothing"
  elif [[ -z $(lumitui_saved_elsewhere) ]]; then
    next=unsaved why="the program exited with 85 after step $step, but saved nothing: no new file in checkpoints/, \
elsewhere in the run's folder, or in a folder that job.sh or the code names; another time limit would train the same steps"
  fi
  lumitui_note "$(printf '"event": "ended", "rc": %d, "step": %s, "next": "%s"' "$rc" "${step:-null}" "$next")"
  if [[ -n $why ]]; then echo "lumitui: $why. The chain ends here." >&2; fi
  if [[ $next == requeue ]]; then goes_on=yes; lumitui_requeue "$step"; fi
}

# lumitui_saved_elsewhere: print a newer file that may be a save of a script without checkpoints/, in the run's
# folder or in a folder of the user that job.sh or the code names, by its path or by a variable. Files that are
# written without a save do not count. If the search takes longer than a minute, print `unknown`: the chain continues.
lumitui_saved_elsewhere() {
  timeout 60 bash -c '
    cd "$RUN_DIR" || exit
    own=() texts=(job.sh)
    if [[ -d code ]]; then texts+=(code); else texts+=("${CODE:-job.sh}"); fi
    while IFS= read -r path; do
      [[ -d $path ]] || path=${path%/*}
      if [[ -d $path && -O $path && ! $path -ef . ]]; then own+=("$path"); fi
    done < <(
      grep -rhoIE "/[A-Za-z0-9._@%+=-]+(/[A-Za-z0-9._@%+=-]+)+" "${texts[@]}" 2>/dev/null | sort -u
      grep -rhoIE "[A-Za-z_][A-Za-z0-9_]+" "${texts[@]}" 2>/dev/null | sort -u | while read -r name; do
        [[ $name =~ ^(RUN_DIR|CODE|PWD|OLDPWD|TMPDIR|NODE_TMP)$ || ${!name-} != /* ]] || echo "${!name}/"
      done
    )
    find -L . "${own[@]}" -type f -newer .began ! -path "./.*" ! -path "./attempt*" ! -path "./watch/*" \
      ! -path "./profile/*" ! -path "./checkpoints/.*" ! -path "./checkpoints/start-*-step-*/*" \
      ! -path "*/__pycache__/*" ! -path "$RUN_DIR/*" ! -name "*.jsonl" ! -name "*.log" ! -name "*.out" ! -name "*.err" \
      ! -name "events.out.tfevents.*" ! -path ./stop ! -path "./flight-*" ! -path ./binding.json \
      ! -path "./errors/*" ! -path "./heartbeat*" ! -path ./hung.json ! -path ./preflight.json ! -path ./hostfile ! -path ./cancelled 2>/dev/null | head -n 1
  ' || echo unknown
}

# lumitui_requeue STEP: requeue this job. Try for ten minutes, because slurmctld may be away.
lumitui_requeue() {
  local job= said= pause
  trap 'killed=yes' TERM # from the requeue itself, or from a cancel: the decision is made
  for pause in 0 2 5 10 20 30 60 60 60 60 60 60 60 60; do
    sleep "$pause"
    if [[ -n $killed ]]; then return; fi
    # After a cancel, exit code 85 would look like a failure.
    if [[ -e $RUN_DIR/cancelled ]]; then lumitui_cancel_itself; return; fi
    job=$(scontrol show job "$SLURM_JOB_ID" 2>&1) || { said=$job; continue; }
    # The reply to a requeue may be lost; and Slurm may have given up this node, which then came back.
    [[ "$job " =~ JobState=RUNNING[[:space:]] && "$job " =~ Restarts=$((attempt - 1))[[:space:]] ]] || return
    # A controller that lost its state may have given the id to another job, with another name and folder.
    [[ "$job " == *" JobName=$SLURM_JOB_NAME"[[:space:]]* || "$job " == *" WorkDir=$RUN_DIR"[[:space:]]* ]] || return
    if [[ -n $killed ]]; then return; fi
    if [[ -e $RUN_DIR/cancelled ]]; then lumitui_cancel_itself; return; fi
    echo "lumitui: attempt $attempt of at most $chain stopped${1:+ after step $1}; the job is requeued."
    if said=$(scontrol requeue "$SLURM_JOB_ID" 2>&1) || [[ -n $killed ]]; then return; fi
    case $said in *disabled* | *[Dd]enied* | *'Invalid job id'*) break ;; esac
  done
  goes_on=
  said=$(tr -cd 'A-Za-z0-9 ._,:/()-' <<<"${said:0:300}") || true
  echo "lumitui: the job could not be requeued ($said). The chain ends here." >&2
  lumitui_note "\"event\": \"refused\", \"said\": \"$said\""
}
