# Two nodes in the shape of Mahti's GPU partitions: two sockets of 64 cores with two threads, four NUMA domains each, four
# A100, and a disk on each node that a job asks for as the gres `nvme`. Sources: CSC user guide of August 2026
# (systems-mahti, batch-job-partitions). Which GPU is near which domain is not published; the buses are the stand-in's own.
DEFAULT_ROOT=/tmp/minimahti DEFAULT_SSH_PORT=2436 DEFAULT_BASE=20150
CLUSTER=mahti LOGIN_HOST=mahti-login11 OTHER_LOGIN_HOST=''

NODE_FORMAT='g11%02d' NODE_FIRST=1 DEFAULT_NODES=2
SOCKETS=2 CORES_PER_SOCKET=64 THREADS_PER_CORE=2
TOPOLOGY='pack:2 numa:4 l3:4 core:4'       # NPS4, a CCX of Rome is an L3 with four cores
RESERVED_CORES=''
MEMORY_MIB=501760                          # 490 GiB
GPUS=4 GRES=gpu:a100:4,nvme:3500 GRES_TYPE=a100 GPU_ENV=nvidia_gpu_env
DISK_GIB=3500 DISK_VARIABLE=LOCAL_SCRATCH
DRIVER=nvidia GPU_MODEL='NVIDIA A100-SXM4-40GB' GPU_BUS='03 44 84 c4' NUMA_DOMAINS=8
GPU_NUMA='3 1 7 5' GPU_CORES='48-63 16-31 112-127 80-95'

CLI_FILTER=mahti/cli_filter.lua            # --hint=nomultithread unless the job says otherwise
# 122.5 GiB a GPU without asking. The limits in GPUs are QOS of the partitions.
PARTITIONS='
PartitionName=DEFAULT Nodes=@NODES@ DefMemPerGPU=125440 State=UP
PartitionName=gputest MaxTime=00:15:00 MaxNodes=1 QOS=p_gputest
PartitionName=gpusmall MaxTime=1-12:00:00 MaxNodes=1 QOS=p_gpusmall
PartitionName=gpumedium MaxTime=1-12:00:00 MaxNodes=6 QOS=p_gpumedium
'
QOS_LIMITS='
p_gputest MaxTRESPerJob=gres/gpu=4
p_gpusmall MaxTRESPerJob=gres/gpu=2
p_gpumedium MaxTRESPerJob=gres/gpu=24
'
ACCOUNT=project_2001659                    # Puhti, Mahti and Roihu have their projects in common
FOREIGN_ACCOUNT=project_2001660
QOS_LIST=''

HOME_BASE=/users SCRATCH=/scratch/project_2001659
TREE_LINK=''
MODULES=modules
IMAGE=''
