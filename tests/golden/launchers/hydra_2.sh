#!/bin/bash -l
#SBATCH --account=project_462000001
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --mem-per-gpu=60G
#SBATCH --time=01:00:00
#SBATCH --open-mode=append
# Written by lumitui. lumitui.sh, beside this file, defines the functions lumitui_…: claim, proof, end.
set -eo pipefail
[[ -f lumitui.sh ]] || cd "$SLURM_SUBMIT_DIR" # a shell startup file may have changed the folder
. ./lumitui.sh
lumitui_begin

# Modules
module purge
module load Local-LAIF lumi-aif-singularity-bindings

# Container (laif)
SIF=/appl/local/laifs/containers/lumi-multitorch-u24r70f21m50t210-20260415_130625/lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif

# Environment
unset SRUN_CPUS_PER_TASK # with it, mpirun's daemons get only the cores of one rank
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
lumitui_secrets # WANDB_API_KEY

# Rendezvous
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))

# Binding: local rank i runs on the cores nearest to GPU i
export CPU_BIND_MASKS="0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000,0x00000000fe000000,0x00000000000000fe,0x000000000000fe00,0x000000fe00000000,0x0000fe0000000000"

# Launch
cd "$RUN_DIR"/code
launch() {
  export HWLOC_COMPONENTS="${HWLOC_COMPONENTS--gl}" # otherwise, a server on port 6006, like TensorBoard, hangs mpirun
  set -o pipefail; rm -f "$RUN_DIR/rank-failed" # after a rank fails, mpirun has 30 s to end the others, because it may wait forever
  { SLURM_CPU_BIND=none SLURM_OVERLAP=1 I_MPI_PIN=0 env -u ROCR_VISIBLE_DEVICES -u SLURM_CPUS_PER_TASK -u SLURM_TRES_PER_TASK \
    mpirun -n 16 -ppn 8 -prepend-rank \
    bash -c 'export RANK=$PMI_RANK LOCAL_RANK=$MPI_LOCALRANKID WORLD_SIZE=$PMI_SIZE LOCAL_WORLD_SIZE=$MPI_LOCALNRANKS SLURM_CPUS_PER_TASK=7; masks=(${CPU_BIND_MASKS//,/ }); ! command -v taskset >/dev/null || set -- taskset "${masks[LOCAL_RANK]}" "$@"; trap : TERM; "$@" || { ended=$?; echo "lumitui: rank $RANK ended with $ended" >&2; : >"$RUN_DIR/rank-failed"; kill -9 $$; }' rank \
    singularity run "$SIF" \
    "$@" & launcher=$!
    { until [[ -e $RUN_DIR/rank-failed ]]; do sleep 5; done; sleep 30; pkill -P "$launcher"; kill "$launcher"; } >/dev/null 2>&1 &
    rc=0; wait "$launcher" || rc=$?; kill $! 2>/dev/null || true; (exit "$rc")
  } 2>&1 | sed -u 's/^\[\([0-9]\{1,\}\)\] /\1: /'
}
lumitui_preflight warn launch python "$RUN_DIR"/preflight.py --gpus=8 --bus=c1,c6,c9,ce,d1,d6,d9,de --in-node=100 --all-nodes=87.6
lumitui_prove launch sh "$RUN_DIR/probe.sh"
lumitui_gpus 8 'rocm-smi --showpower --showuse --showmeminfo vram --json' # records their use, for `lumitui show`
lumitui_run launch python "$RUN_DIR"/code/train.py 'it'"'"'s'
