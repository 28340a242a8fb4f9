# Two accelerated nodes in the shape of Karolina: two sockets of 64 cores, four NUMA domains each, eight A100, two each on
# the domains 1, 3, 5 and 7. Sources: docs.it4i.cz (karolina-mpi, resources-allocation-policy), and a user's copy of
# karolina-partitions of July 2026. The order of the GPUs is the one of other HGX boards with these processors: unverified.
DEFAULT_ROOT=/tmp/minikarolina DEFAULT_SSH_PORT=2440 DEFAULT_BASE=20350
CLUSTER=karolina LOGIN_HOST=login1 OTHER_LOGIN_HOST=''

NODE_FORMAT='acn%02d' NODE_FIRST=1 DEFAULT_NODES=2
SOCKETS=2 CORES_PER_SOCKET=64 THREADS_PER_CORE=1
TOPOLOGY='pack:2 numa:4 l3:2 core:8'       # NPS4, a CCX of Milan is an L3 with eight cores
RESERVED_CORES=''
MEMORY_MIB=1024000
GPUS=8 GRES=gpu:8 GRES_TYPE='' GPU_ENV=nvidia_gpu_env
DISK_GIB='' DISK_VARIABLE=''
DRIVER=nvidia GPU_MODEL='NVIDIA A100-SXM4-40GB' GPU_BUS='07 0b 48 4c 88 8b c8 cb' NUMA_DOMAINS=8
GPU_NUMA='3 3 1 1 7 7 5 5' GPU_CORES='48-55 56-63 16-23 24-31 112-119 120-127 80-87 88-95'

CLI_FILTER=''
# A GPU brings an eighth of the node. qgpu_preempt is requeued for any other job.
PARTITIONS='
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=DEFAULT Nodes=@NODES@ PriorityTier=2 PreemptMode=OFF DefCpuPerGPU=16 DefMemPerGPU=128000 State=UP
PartitionName=qgpu DefaultTime=1-00:00:00 MaxTime=2-00:00:00 MaxNodes=16
PartitionName=qgpu_exp DefaultTime=01:00:00 MaxTime=01:00:00 MaxNodes=8 QOS=p_qgpu_exp
PartitionName=qgpu_free DefaultTime=12:00:00 MaxTime=18:00:00 MaxNodes=16
PartitionName=qgpu_big DefaultTime=12:00:00 MaxTime=2-00:00:00 MaxNodes=72 QOS=p_qgpu_big
PartitionName=qgpu_preempt DefaultTime=12:00:00 MaxTime=2-00:00:00 MaxNodes=16 PriorityTier=1 PreemptMode=REQUEUE
'
QOS_LIMITS='
p_qgpu_exp MaxJobsPerUser=1 MaxSubmitJobsPerUser=6
p_qgpu_big MinTRESPerJob=node=17
'
ACCOUNT=open-00-01
FOREIGN_ACCOUNT=open-00-01
QOS_LIST=''

HOME_BASE=/users SCRATCH=/scratch/project/open-00-01
TREE_LINK=''
MODULES=modules
IMAGE='' APPTAINER=1
