# Two nodes in the shape of Puhti's GPU partition: two sockets of 20 cores, four V100, and a disk on each node that a job
# asks for as the gres `nvme`. Sources: CSC user guide of August 2026 (systems-puhti, batch-job-partitions,
# creating-job-scripts-puhti). The buses are the stand-in's own.
DEFAULT_ROOT=/tmp/minipuhti DEFAULT_SSH_PORT=2434 DEFAULT_BASE=20050
CLUSTER=puhti LOGIN_HOST=puhti-login11 OTHER_LOGIN_HOST=''

NODE_FORMAT='r01g%02d' NODE_FIRST=1 DEFAULT_NODES=2
SOCKETS=2 CORES_PER_SOCKET=20 THREADS_PER_CORE=1
TOPOLOGY='pack:2 numa:1 l3:1 core:20'
RESERVED_CORES=''
MEMORY_MIB=381952                          # 373 GiB
GPUS=4 GRES=gpu:v100:4,nvme:3600 GRES_TYPE=v100 GPU_ENV=nvidia_gpu_env
DISK_GIB=3600 DISK_VARIABLE=LOCAL_SCRATCH
DRIVER=nvidia GPU_MODEL='Tesla V100-SXM2-32GB' GPU_BUS='61 62 89 8a' NUMA_DOMAINS=2
GPU_NUMA='0 0 1 1' GPU_CORES='0-9 10-19 20-29 30-39'

CLI_FILTER=''
# A job that does not ask for memory gets little of it. The limits in GPUs are QOS of the partitions.
PARTITIONS='
PartitionName=DEFAULT Nodes=@NODES@ DefMemPerCPU=1000 State=UP
PartitionName=gputest MaxTime=00:15:00 MaxNodes=2 QOS=p_gputest
PartitionName=gpu MaxTime=3-00:00:00 MaxNodes=20 QOS=p_gpu
'
QOS_LIMITS='
p_gputest MaxTRESPerJob=gres/gpu=8
p_gpu MaxTRESPerJob=gres/gpu=80
'
ACCOUNT=project_2001659                    # Puhti, Mahti and Roihu have their projects in common
FOREIGN_ACCOUNT=project_2001660
QOS_LIST=''

HOME_BASE=/users SCRATCH=/scratch/project_2001659
TREE_LINK=''
MODULES=modules                            # shapes/puhti/modules
IMAGE=''
