# Two nodes in the shape of MareNostrum 5 ACC: untyped GPUs, no SMT, no reserved cores, a default partition
# and a QOS that must be given. Second-hand facts (TRUBA's translation of BSC's pages, June 2025).
DEFAULT_ROOT=/tmp/minimn5 DEFAULT_SSH_PORT=2432 DEFAULT_BASE=16900
CLUSTER=mn5 LOGIN_HOST=alogin1 OTHER_LOGIN_HOST=''

NODE_FORMAT='as01r1b%02d' NODE_FIRST=1 DEFAULT_NODES=2
SOCKETS=2 CORES_PER_SOCKET=40 THREADS_PER_CORE=1
TOPOLOGY='pack:2 numa:1 l3:1 core:40'
RESERVED_CORES=''
MEMORY_MIB=512000
GPUS=4 GRES=gpu:4 GRES_TYPE='' GPU_ENV=nvidia_gpu_env
DRIVER=nvidia GPU_BUS='1b 2c 9d ad' NUMA_DOMAINS=2

CLI_FILTER=''
PARTITIONS='
PartitionName=acc Nodes=@NODES@ MaxTime=3-00:00:00 Default=YES DefMemPerCPU=6000 State=UP
'
ACCOUNT=ehpc01
FOREIGN_ACCOUNT=ehpc02
QOS_LIST='acc_debug acc_ehpc'

HOME_BASE=/users SCRATCH=/gpfs/scratch/ehpc01
TREE_LINK=''
MODULES=''
IMAGE=''
