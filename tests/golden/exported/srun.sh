#!/bin/bash -l
#SBATCH --account=project_462000001
#SBATCH --partition=standard-g
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --mem-per-gpu=60G
#SBATCH --time=01:00:00
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
#SBATCH --job-name=srun
#SBATCH --output=slurm-%x-%j.out
# Written by lumitui, for plain Slurm: README.md lists what it needs. In this folder, run: sbatch job.sh
set -eo pipefail; umask 077
cd "$SLURM_SUBMIT_DIR"
export RUN_DIR=$PWD; unset SLURM_EXPORT_ENV
rm -f stop; trap ': >"$RUN_DIR/stop"' USR1 # near the time limit, asks the trainer to save

# Modules
module purge
module load Local-LAIF lumi-aif-singularity-bindings

# Container (laif)
SIF=/appl/local/laifs/containers/lumi-multitorch-u24r70f21m50t210-20260415_130625/lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif

# Environment
NODE_TMP=$(mktemp -u "/tmp"/"$USER-$SLURM_JOB_ID-XXXXXXXXXX") # the job's own folder on every node
on_nodes() { srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "$@"; }
trap 'on_nodes rm -rf "$NODE_TMP"' EXIT
on_nodes mkdir -p "$NODE_TMP" "$NODE_TMP"/miopen-cache "$NODE_TMP"/miopen-config
export TORCH_HOME="/scratch/${SLURM_JOB_ACCOUNT}/${USER}/torch_home"
export HF_HOME="/scratch/${SLURM_JOB_ACCOUNT}/${USER}/hf_home"
export MIOPEN_CUSTOM_CACHE_DIR="${NODE_TMP}/miopen-cache"
export MIOPEN_USER_DB_PATH="${NODE_TMP}/miopen-config"
export TRITON_CACHE_DIR="${NODE_TMP}/triton"
export TORCHINDUCTOR_CACHE_DIR="${NODE_TMP}/inductor"
export TORCH_EXTENSIONS_DIR="${NODE_TMP}/extensions"
export FI_MR_CACHE_MONITOR="userfaultfd"
export NCCL_NET="AWS Libfabric"
export PYTHONUNBUFFERED="1"

# Rendezvous
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=8

# Binding: local rank i runs on the cores nearest to GPU i
unset SRUN_CPUS_PER_TASK # with it, a step gets only the first cores of the job
CPU_BIND_MASKS="0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000,0x00000000fe000000,0x00000000000000fe,0x000000000000fe00,0x000000fe00000000,0x0000fe0000000000"

# Launch
cd "$RUN_DIR"/code
# Resume from this run's own checkpoints, if there are any
resume=(); if compgen -G "$RUN_DIR/checkpoints/*" >/dev/null; then resume=(--resume); fi
srun --kill-on-bad-exit=1 --label --cpu-bind=v,mask_cpu="$CPU_BIND_MASKS" \
  singularity run "$SIF" \
  bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; exec "$@"' rank \
  python "$RUN_DIR"/code/.lumitui/trainers/ddp.py --model vit --steps 3 --batch-size 8 "${resume[@]}" &
while rc=0; wait $! || rc=$?; kill -0 $! 2>/dev/null; do :; done; exit "$rc" # a signal interrupts only `wait`
