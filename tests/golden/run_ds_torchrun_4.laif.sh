#!/bin/bash -l
#SBATCH --account=project_462000001
#SBATCH --partition=standard-g
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=56
#SBATCH --mem=480G
#SBATCH --time=01:00:00
#SBATCH --open-mode=append
#SBATCH --signal=USR1@60
# Written by lumitui. The folder, the name and the log are arguments of sbatch, so that this
# text is the same for every run of the job.
set -eo pipefail
umask 077
export RUN_DIR=$PWD
# A login file may have gone elsewhere (cd $SCRATCH); the lock of the submit step is in the right folder.
if [[ ! -d $RUN_DIR/attempt-1.submit && -n $SLURM_SUBMIT_DIR ]]; then RUN_DIR=$SLURM_SUBMIT_DIR; cd "$RUN_DIR"; fi
attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
# A requeued job writes a log of its own, and proves its binding anew: the nodes may be others.
if ((attempt > 1)); then
  rm -f "$RUN_DIR/binding.json" || true
  exec >>"$RUN_DIR/attempt-$attempt.out" 2>&1
fi

# The claim: a second job of the same run ends here. A requeued job has its claim already.
ln -s "$SLURM_JOB_ID" "$RUN_DIR/attempt-1.claim" 2>/dev/null || true
owner=$(readlink "$RUN_DIR/attempt-1.claim") || owner=
if [[ $owner != "$SLURM_JOB_ID" ]]; then
  set +e
  if [[ -n $owner ]]; then echo "lumitui: attempt $attempt belongs to job $owner; job $SLURM_JOB_ID ends."; exit 0; fi
  echo "lumitui: job $SLURM_JOB_ID cannot write in $RUN_DIR, so that it does nothing. Is the disk or the quota full?"
  exit 73
fi

# Modules
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings

# Container (laif)
SIF=/appl/local/laifs/containers/lumi-multitorch-u24r70f21m50t210-20260415_130625/lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif

# In names below a node's /tmp, where other users may make what a job will look for.
UNGUESSED=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')

# Environment
export TORCH_HOME="/scratch/${SLURM_JOB_ACCOUNT}/${USER}/torch_home"
export HF_HOME="/scratch/${SLURM_JOB_ACCOUNT}/${USER}/hf_home"
export NCCL_SOCKET_IFNAME="hsn0,hsn1,hsn2,hsn3"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/${USER}-miopen-${UNGUESSED}-cache"
export MIOPEN_USER_DB_PATH="/tmp/${USER}-miopen-${UNGUESSED}-config"
export PYTHONUNBUFFERED="1"
set -u
# srun does not inherit sbatch's --cpus-per-task (Slurm >= 22.05): a task would get one core.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
# A login file's NONE would take all of this from the ranks.
unset SLURM_EXPORT_ENV

# A step that is not the launch says --overlap: until it has quite ended, the next one would get
# other cores and GPUs, or be refused ("Invalid generic resource").

# Rendezvous
# No `head`: under pipefail a long list's scontrol would end by SIGPIPE, and the job with it.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_ADDR=${MASTER_ADDR%%$'\n'*}
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# What the job makes on its nodes goes with it.
clean() { rm -rf "/tmp/${USER}-miopen-${UNGUESSED}-cache" "/tmp/${USER}-miopen-${UNGUESSED}-config"; }
trap clean EXIT
# Without it bash removes them at once, under ranks that are saving; with it, when srun has returned.
trap 'exit 143' TERM

# Folders every node needs
srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 mkdir -p "/tmp/${USER}-miopen-${UNGUESSED}-cache" "/tmp/${USER}-miopen-${UNGUESSED}-config"

cd "$RUN_DIR"/code/.
# Continue from this run's own checkpoints when there are any: after a requeue, or copied there.
resume=()
if compgen -G "$RUN_DIR/checkpoints/*" >/dev/null; then resume=(--resume); fi

# Proof of binding: the probe takes the program's place. Whatever becomes of it, the job goes on.
export PROOF_DIR=$RUN_DIR/.proof-$attempt
mkdir -p "$PROOF_DIR" || true
probe=0 limit=60 began=$SECONDS
(
  # A port of its own: what a stopped probe leaves behind must not be in the launch's way.
  MASTER_PORT=$((MASTER_PORT + 10000))
  timeout -k 15 "$limit" srun --overlap --kill-on-bad-exit=1 --label \
  singularity run "$SIF" \
  python -m torch.distributed.run \
  --nnodes="$SLURM_JOB_NUM_NODES" --nproc_per_node=8 \
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
  --numa-binding=exclusive \
  --no-python sh "$RUN_DIR/probe.sh"
) >"$PROOF_DIR/said" 2>&1 || probe=$?
cat "$PROOF_DIR/said" || true
# 137 is also what a killed rank leaves.
if ((probe == 137 && SECONDS - began >= limit)); then probe=124; fi
said=
if ((probe)); then
  said=$(grep -m 1 -E 'error:|fatal:|FATAL|Error:' "$PROOF_DIR/said" || tail -n 1 "$PROOF_DIR/said") || true
  said=$(tr -cd 'A-Za-z0-9 ._,:/()-' <<<"${said:0:300}") || true
  echo "lumitui: the probe ended with $probe; the binding is not proven." >&2
fi
{
  echo '[' &&
    {
      cat "$PROOF_DIR"/rank-* 2>/dev/null || true
      if ((probe)); then printf '{"probe": %d, "said": "%s"}\n' "$probe" "$said"; fi
    } | sed '$!s/$/,/' &&
    echo ']'
} >"$RUN_DIR/.binding.json" && mv -f "$RUN_DIR/.binding.json" "$RUN_DIR/binding.json" ||
  echo "lumitui: binding.json could not be written; the binding is not proven." >&2
rm -rf "$PROOF_DIR" || true

# Launch
rc=0
before=$(wc -c <"$RUN_DIR/attempt-$attempt.out") || before=0
srun --kill-on-bad-exit=1 --label \
  singularity run "$SIF" \
  python -m torch.distributed.run \
  --nnodes="$SLURM_JOB_NUM_NODES" --nproc_per_node=8 \
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
  --numa-binding=exclusive \
  --signals-to-handle=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1 \
  "$RUN_DIR"/code/.lumitui/trainers/deepspeed_zero.py --model vit --steps 3 --deepspeed --deepspeed_config "$RUN_DIR/ds_config.json" ${resume[@]+"${resume[@]}"} || rc=$?

# The exit file: only after the launch returned; a trap would write one for a killed job too.
# srun returns the highest code; the first line it wrote about a task names who failed first.
first=$(tail -c "+$((before + 1))" "$RUN_DIR/attempt-$attempt.out" | tail -c 1000000 |
  sed -n 's/^srun: error: [^:]*: tasks\{0,1\} \([0-9]\{1,\}\)[^:]*: /\1 /p' | head -n 1) || true
rank=null oom=false
if ((rc != 0)); then
  case ${first#* } in
    'Exited with exit code '*) rc=${first##* } ;;
    Aborted*) rc=134 ;;
    Killed*) rc=137 ;;
    'Out Of Memory'*) rc=137 oom=true ;;
    'Segmentation fault'*) rc=139 ;;
    Terminated*) first= ;; # from outside: nobody failed first
  esac
fi
ended=$(date +%s)
printf '{"rc": %d, "rank": %s, "job": "%s", "attempt": %d, "started": %d, "ended": %d, "oom": %s}\n' \
  "$rc" "${rank:-null}" "$SLURM_JOB_ID" "$attempt" $((ended - SECONDS)) "$ended" "$oom" \
  >"$RUN_DIR/.exit-$attempt" &&
  mv "$RUN_DIR/.exit-$attempt" "$RUN_DIR/attempt-$attempt.exit" || true
cd "$RUN_DIR"
# This node's go with the script.
if ((SLURM_JOB_NUM_NODES > 1)); then
  timeout 60 srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 rm -rf "/tmp/${USER}-miopen-${UNGUESSED}-cache" "/tmp/${USER}-miopen-${UNGUESSED}-config" || true
fi
# A login shell runs ~/.bash_logout: under set -e its failure would become the job's.
set +eu
exit "$rc"
