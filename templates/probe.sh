#!/bin/sh
# What one rank may really use. It takes the program's place in the launch, so that srun,
# container and launcher are the same, and writes one line of JSON to $PROOF_DIR.
# It never fails: a rank without a line was not measured.
umask 077
rank=${RANK:-${SLURM_PROCID:-0}}
local_rank=${LOCAL_RANK:-${SLURM_LOCALID:-0}}
node=${SLURM_NODEID:-0}
last=$((${SLURM_JOB_NUM_NODES:-1} - 1))
# Beyond 16 nodes the first and the last stand for all.
if [ "$last" -ge 16 ] && [ "$node" -ne 0 ] && [ "$node" -ne "$last" ]; then exit 0; fi
# taskset asks the kernel; /proc/self/status would show what the cgroup once allowed.
cores=$(taskset -cp $$ 2>/dev/null | sed 's/^.*: *//')
gpus=${ROCR_VISIBLE_DEVICES:-${HIP_VISIBLE_DEVICES:-${CUDA_VISIBLE_DEVICES:-}}}
clean() { printf '%s' "$1" | tr -cd 'A-Za-z0-9._,:-'; }
line=$(printf '{"rank": %d, "local_rank": %d, "host": "%s", "cores": "%s", "gpus": "%s"}' \
  "$rank" "$local_rank" "$(clean "$(hostname)")" "$(clean "$cores")" "$(clean "$gpus")")
printf '%s\n' "$line" > "$PROOF_DIR/.rank-$rank" && mv "$PROOF_DIR/.rank-$rank" "$PROOF_DIR/rank-$rank"
exit 0
