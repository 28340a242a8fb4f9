#!/bin/sh
# What one rank may really use. It takes the program's place in the launch, so that srun,
# container and launcher are the same, and writes one line of JSON to $PROOF_DIR.
# It never fails: a rank without a line was not measured.
umask 077
rank=${RANK:-${SLURM_PROCID:-0}}
local_rank=${LOCAL_RANK:-${SLURM_LOCALID:-0}}
case $rank:$local_rank in :* | *: | *[!0-9:]*) exit 0 ;; esac
node=${SLURM_NODEID:-0}
last=$((${SLURM_JOB_NUM_NODES:-1} - 1))
# Beyond 16 nodes the first and the last stand for all.
if [ "$last" -ge 16 ] && [ "$node" -ne 0 ] && [ "$node" -ne "$last" ]; then exit 0; fi
# taskset asks the kernel; /proc/self/status would show what the cgroup once allowed.
cores=$(taskset -cp $$ 2>/dev/null | sed 's/^.*: *//')
# Not set is all GPUs (or nothing known), set to nothing is none. HIP counts in what ROCr left.
gpus=${ROCR_VISIBLE_DEVICES-unset}
within=${HIP_VISIBLE_DEVICES-${CUDA_VISIBLE_DEVICES-unset}}
if [ "$gpus" = unset ]; then
  gpus=$within
elif [ "$within" != unset ] && [ "$within" != "$gpus" ]; then
  case $within in
    *[!0-9,]*) gpus=$within ;;
    *)
      seen=
      for index in $(printf '%s' "$within" | tr , ' '); do
        one=$(printf '%s,' "$gpus" | cut -d, -f "$((index + 1))")
        [ -n "$one" ] || break
        seen=$seen,$one
      done
      gpus=${seen#,}
      ;;
  esac
fi
case $gpus in unset) gpus= ;; '' | -1*) gpus=none ;; esac
clean() { printf '%s' "$1" | tr -cd 'A-Za-z0-9._,:-'; }
# Where all nodes are one machine (lumitui's own srun), LUMITUI_NODE says which one this is.
host=$(clean "${LUMITUI_NODE:-$(uname -n)}")
line=$(printf '{"rank": %d, "local_rank": %d, "host": "%s", "cores": "%s", "gpus": "%s"}' \
  "$rank" "$local_rank" "$host" "$(clean "$cores")" "$(clean "$gpus")")
# A name of its own: two processes that say they are the same rank must both be seen.
name=$rank.$host.$$
printf '%s\n' "$line" > "$PROOF_DIR/.$name" && mv "$PROOF_DIR/.$name" "$PROOF_DIR/rank-$name"
exit 0
