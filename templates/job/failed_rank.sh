
# ---- What a launcher prints about the rank that failed first, after the functions above (templates/job/failed_rank.sh).

# lumitui_launcher_failure BEFORE: set `rank` and `rc` of the first rank named after this many bytes of the log; the
# launcher exits with its own code. `failed`: the codes of all named ranks. A signal's code is 128 plus its number.
lumitui_launcher_failure() {
  local kind code one
  while read -r kind one code; do
    # torchrun names the first rank of each node: one that exited with 1 may only have lost its peer.
    if ((${#failed[@]} == 0)) || [[ $kind == torchrun && $rc == 1 && $code != 1 ]]; then
      rank=$one rc=$((code < 0 ? 128 - code : code))
    fi
    failed+=("$code")
  done < <(tail -c "+$(($1 + 1))" "$RUN_DIR/attempt-$attempt.out" | tail -c 1000000 | sed -n '
    # torchrun and accelerate
    /Root Cause (first observed failure):/,/traceback *:/ {
      s/.*  rank *: \([0-9]\{1,\}\) (local_rank.*/\1/
      t keep
      s/.*  exitcode *: \(-\{0,1\}[0-9]\{1,\}\) (pid.*/\1/
      t tell
    }
    # what a rank below mpirun or DeepSpeed prints itself (templates/launchers/rank.j2)
    s/^\([0-9]\{1,\}: \)\{0,1\}lumitui: rank \([0-9]\{1,\}\) ended with \([0-9]\{1,3\}\)$/rank \2 \3/p
    b
    :keep
    h
    b
    :tell
    G
    s/\(.*\)\n\(.*\)/torchrun \2 \1/p')
}
