# Two nodes in the shape of MareNostrum 5 ACC: untyped GPUs, no SMT, no reserved cores, a default partition, and a QOS
# that must be given. Sources: TRUBA's translation of BSC's pages (June 2025); BSC's course book (supercomputing-for-ai,
# January 2026) for 20 cores a GPU and acc_training. Second-hand: BSC's own pages were not read.
DEFAULT_ROOT=/tmp/minimn5 DEFAULT_SSH_PORT=2432 DEFAULT_BASE=20100
CLUSTER=mn5 LOGIN_HOST=alogin1 OTHER_LOGIN_HOST=''
TRANSFER_HOST=transfer1                    # files go over it
CLOSED=yes                                 # no node, login nodes included, reaches anything outside

NODE_FORMAT='as01r1b%02d' NODE_FIRST=1 DEFAULT_NODES=2
SOCKETS=2 CORES_PER_SOCKET=40 THREADS_PER_CORE=1
TOPOLOGY='pack:2 numa:1 l3:1 core:40'
RESERVED_CORES=''
MEMORY_MIB=512000
GPUS=4 GRES=gpu:4 GRES_TYPE='' GPU_ENV=nvidia_gpu_env
DISK_GIB='' DISK_VARIABLE=TMPDIR           # 480 GB
DRIVER=nvidia GPU_MODEL='NVIDIA H100' GPU_BUS='1b 2c 9d ad' NUMA_DOMAINS=2
GPU_NUMA='0 0 1 1' GPU_CORES='0-19 20-39 40-59 60-79'

CLI_FILTER=''
JOB_SUBMIT=mn5-acc/job_submit.lua          # 20 cores for each GPU, and no --mem
PARTITIONS='
PartitionName=DEFAULT Nodes=@NODES@ DefMemPerCPU=6000 State=UP
PartitionName=acc MaxTime=3-00:00:00 Default=YES
PartitionName=accinteractive MaxTime=02:00:00 MaxNodes=1
'
QOS_LIMITS='
acc_debug MaxTRESPerJob=node=8 MaxWall=02:00:00
acc_interactive MaxTRESPerJob=node=1,cpu=40 MaxWall=02:00:00
acc_training MaxTRESPerJob=node=4 MaxWall=1-00:00:00
acc_ehpc MaxTRESPerJob=node=100 MaxWall=3-00:00:00
acc_resa MaxTRESPerJob=node=50 MaxWall=3-00:00:00
acc_resb MaxTRESPerJob=node=50 MaxWall=2-00:00:00
acc_resc MaxTRESPerJob=node=10 MaxWall=1-00:00:00
acc_bsccs MaxTRESPerJob=node=25 MaxWall=2-00:00:00
acc_bench MaxWall=3-00:00:00
'
ACCOUNT=ehpc01
FOREIGN_ACCOUNT=ehpc02
QOS_LIST='acc_debug acc_interactive acc_training acc_ehpc acc_resa acc_resb acc_resc acc_bsccs acc_bench'   # the login user's

HOME_BASE=/users SCRATCH=/gpfs/scratch/ehpc01
TREE_LINK=/gpfs/apps                       # shapes/mn5-acc/gpfs/apps is seen here
MODULES=/gpfs/apps/MN5/ACC/modules
IMAGE=''
