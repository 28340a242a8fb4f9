# Two nodes of a cluster that no profile describes: nothing has the name that it has elsewhere, and its GPUs are
# in no order that anybody would guess. Made up. What `lumitui site add` and `site check --probe` must find out.
DEFAULT_ROOT=/tmp/miniunknown DEFAULT_SSH_PORT=2439 DEFAULT_BASE=20200
CLUSTER=zephyr LOGIN_HOST=porch OTHER_LOGIN_HOST=''

NODE_FORMAT='gx%02d' NODE_FIRST=11 DEFAULT_NODES=2
SOCKETS=2 CORES_PER_SOCKET=24 THREADS_PER_CORE=2
TOPOLOGY='pack:2 numa:2 l3:1 core:12'
RESERVED_CORES='0 12 24 36'
MEMORY_MIB=256000
GPUS=4 GRES=gpu:a100:4 GRES_TYPE=a100 GPU_ENV=nvidia_gpu_env
DISK_GIB='' DISK_VARIABLE=TMPDIR
DRIVER=nvidia GPU_MODEL='NVIDIA A100-SXM4-40GB' GPU_BUS='17 31 b1 ca' NUMA_DOMAINS=4
GPU_NUMA='1 0 3 2' GPU_CORES='13-23 1-11 37-47 25-35'

CLI_FILTER=''
PARTITIONS='
PartitionName=whole Nodes=@NODES@ MaxTime=1-12:00:00 MaxNodes=2 OverSubscribe=EXCLUSIVE TRESBillingWeights="CPU=0.5,GRES/gpu=10" State=UP
PartitionName=parts Nodes=@NODES@ MaxTime=UNLIMITED Default=YES DefMemPerCPU=2600 State=UP
PartitionName=closed Nodes=@NODES@ MaxTime=01:00:00 AllowAccounts=staff State=UP
PartitionName=asleep Nodes=@NODES@ MaxTime=01:00:00 State=DOWN
'
ACCOUNT=ag-lehre42
FOREIGN_ACCOUNT=ag-fremd
QOS_LIST=''

HOME_BASE=/users SCRATCH=/work/ag-lehre42
TREE_LINK=''
MODULES=''
IMAGE=''
