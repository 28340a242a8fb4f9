# LUMI-G in eight nodes. Sources: LUMI user guide (hardware/lumig, runjobs) and the LUMI training
# materials of April 2026 (201-Slurm, 202-Binding, 205-Containers).
# A run's ranks meet on port 10000 + job id % 10000: Slurm's own ports lie above.
DEFAULT_ROOT=/tmp/minilumi DEFAULT_SSH_PORT=2422 DEFAULT_BASE=20000
CLUSTER=lumi LOGIN_HOST=uan01 OTHER_LOGIN_HOST=uan02

NODE_FORMAT='nid%06d' NODE_FIRST=5001 DEFAULT_NODES=8
SOCKETS=1 CORES_PER_SOCKET=64 THREADS_PER_CORE=2
TOPOLOGY='pack:1 numa:4 l3:2 core:8'       # NPS4, a CCD is an L3 with eight cores
RESERVED_CORES='0 8 16 24 32 40 48 56'     # low-noise mode
MEMORY_MIB=491520
GPUS=8 GRES=gpu:mi250:8 GRES_TYPE=mi250 GPU_ENV=amd_gpu_env
DRIVER=kfd GPU_BUS='c1 c6 c9 ce d1 d6 d9 de' NUMA_DOMAINS=4
GPU_NUMA='3 3 1 1 0 0 2 2' GPU_CORES='49-55 57-63 17-23 25-31 1-7 9-15 33-39 41-47'

CLI_FILTER=lumi-g/cli_filter.lua           # --hint=nomultithread unless the job says otherwise
# 1120 MiB a core: 56 cores without --mem get the 61 GiB that --exclusive alone gives on small-g
# LUMI-G preempts nothing; other sites' partitions for what is left over do (qgpu_preempt of Karolina): the last two
PARTITIONS='
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=DEFAULT Nodes=@NODES@ PriorityTier=2 PreemptMode=OFF State=UP
PartitionName=standard-g MaxTime=2-00:00:00 MaxNodes=1024 OverSubscribe=EXCLUSIVE
PartitionName=small-g MaxTime=3-00:00:00 MaxNodes=4 DefMemPerCPU=1120
PartitionName=dev-g MaxTime=03:00:00 MaxNodes=8 DefMemPerCPU=1120
PartitionName=spare-g MaxTime=03:00:00 MaxNodes=4 DefMemPerCPU=1120 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=scrap-g MaxTime=03:00:00 MaxNodes=4 DefMemPerCPU=1120 PriorityTier=1 PreemptMode=CANCEL
'
ACCOUNT=project_462000001                  # the login user may use it ...
FOREIGN_ACCOUNT=project_462000002          # ... and not this one
QOS_LIST=''

HOME_BASE=/users SCRATCH=/scratch/project_462000001
TREE_LINK=/appl                            # shapes/lumi-g/appl is seen here
MODULES=/appl/lumi/modules                 # on every login shell's MODULEPATH
IMAGE=/appl/local/laifs/containers/lumi-multitorch-latest.sif
