
# ---- What a job with `debug:` does besides, after the functions above (templates/job/debug.sh).

# lumitui_debug IDLE: in the background, ask the ranks to end once no `lumitui shell` has been open for this many
# seconds. If Slurm does not list the steps, nothing ends.
lumitui_debug() {
  local idle=$1 used=$SECONDS steps
  echo "lumitui: the nodes are held; \`lumitui shell ${RUN_DIR##*/}\` opens a shell there."
  while sleep 20; do
    if ! steps=$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%j 2>/dev/null); then continue; fi
    if [[ $'\n'$steps$'\n' == *$'\n'lumitui-shell$'\n'* ]]; then
      used=$SECONDS
    elif ((SECONDS - used >= idle)); then
      echo "lumitui: no shell was open for $idle s, so the job ends."
      : >"$RUN_DIR/stop" || true
      return
    fi
  done &
}
