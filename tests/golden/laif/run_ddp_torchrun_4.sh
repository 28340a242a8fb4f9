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
#SBATCH --signal=B:USR1@60
# Written by lumitui. lumitui.sh, beside this file, defines the functions lumitui_…: claim, proof, end.
set -eo pipefail
[[ -f lumitui.sh ]] || cd "$SLURM_SUBMIT_DIR" # a shell startup file may have changed the folder
. ./lumitui.sh
lumitui_begin
lumitui_stop_on USR1

# Modules
module purge
module load Local-LAIF lumi-aif-singularity-bindings

# Container (laif)
SIF=/appl/local/laifs/containers/lumi-multitorch-u24r70f21m50t210-20260415_130625/lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif

# Environment
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # srun does not inherit it from sbatch
lumitui_node_tmp "/tmp" miopen-cache miopen-config # sets NODE_TMP, the job's own folder on every node
lumitui_compiled 3600 'GCD (half an AMD MI250X)||python' inductor triton miopen-cache miopen-config # compiled code, kept from job to job
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

# Launch
cd "$RUN_DIR"/code
# Resume from this run's own checkpoints, if there are any
resume=(); if compgen -G "$RUN_DIR/checkpoints/*" >/dev/null; then resume=(--resume); fi
launch() {
  srun --kill-on-bad-exit=1 --label \
    bash -c 'export PET_LOCAL_ADDR=$SLURMD_NODENAME; exec "$@"' node \
    singularity run "$SIF" python -m torch.distributed.run \
    --nnodes="$SLURM_JOB_NUM_NODES" --nproc_per_node=8 --numa-binding=exclusive \
    --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
    --signals-to-handle=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1 \
    "$@"
}
lumitui_preflight warn launch "$RUN_DIR"/preflight.py --gpus=8 --bus=c1,c6,c9,ce,d1,d6,d9,de --in-node=100 --all-nodes=87.6
lumitui_prove launch --no-python sh "$RUN_DIR/probe.sh"
lumitui_gpus 8 'rocm-smi --showpower --showuse --showmeminfo vram --json' # records their use, for `lumitui show`
lumitui_run launch "$RUN_DIR"/code/.lumitui/trainers/ddp.py --model vit --steps 3 --batch-size 8 "${resume[@]}"
