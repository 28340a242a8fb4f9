#!/bin/bash -l
#SBATCH --account=project_462000001
#SBATCH --partition=small-g
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=7
#SBATCH --mem-per-gpu=60G
#SBATCH --time=01:00:00
#SBATCH --open-mode=append
#SBATCH --job-name=plain
#SBATCH --output=slurm-%x-%j.out
# Written by lumitui, for plain Slurm: README.md says what it needs. In this folder: sbatch job.sh
set -eo pipefail; umask 077
cd "$SLURM_SUBMIT_DIR"
export RUN_DIR=$PWD; unset SLURM_EXPORT_ENV

# Modules
module purge
module load Local-LAIF lumi-aif-singularity-bindings

# Container (laif)
SIF=/appl/local/laifs/containers/lumi-multitorch-u24r70f21m50t210-20260415_130625/lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif

# Environment
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # srun does not take it from sbatch
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
: "${WANDB_API_KEY:?export it before sbatch}"

# Rendezvous
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=1

# Launch
cd "$RUN_DIR"/code
singularity run "$SIF" \
  bash -c 'export RANK=0 LOCAL_RANK=0; exec "$@"' rank \
  python "$RUN_DIR"/code/train.py 'it'"'"'s'
