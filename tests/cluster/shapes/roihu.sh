# Two nodes in the shape of Roihu's GPU partitions: four superchips of 72 cores and a GH200 each, 288 cores. Sources: CSC
# user guide of August 2026 (systems-roihu, batch-job-partitions) and its pull requests 3140, 3141, 3159. Superchip i has
# the cores 72i to 72i+71: inferred. The processor is this machine's own: the stand-in is no ARM.
DEFAULT_ROOT=/tmp/miniroihu DEFAULT_SSH_PORT=2438 DEFAULT_BASE=20250
CLUSTER=roihu LOGIN_HOST=roihu-gpu-login1 OTHER_LOGIN_HOST=''

NODE_FORMAT='gh%04d' NODE_FIRST=1 DEFAULT_NODES=2
SOCKETS=4 CORES_PER_SOCKET=72 THREADS_PER_CORE=1
TOPOLOGY='pack:4 numa:1 l3:1 core:72'
RESERVED_CORES=''
MEMORY_MIB=868352                          # 212 GiB a GPU
GPUS=4 GRES=gpu:gh200:4 GRES_TYPE=gh200 GPU_ENV=nvidia_gpu_env
DISK_GIB='' DISK_VARIABLE=TMPDIR           # 150 GiB for every job on a GPU node, without asking
# Each superchip is a PCI domain of its own.
DRIVER=nvidia GPU_MODEL='NVIDIA GH200 120GB' GPU_BUS='0009:01 0019:01 0029:01 0039:01' NUMA_DOMAINS=4
GPU_NUMA='0 1 2 3' GPU_CORES='0-71 72-143 144-215 216-287'

CLI_FILTER=''
PARTITIONS='
PartitionName=DEFAULT Nodes=@NODES@ DefMemPerGPU=217088 State=UP
PartitionName=gputest MaxTime=00:15:00 MaxNodes=2 QOS=p_gputest
PartitionName=gpumedium MaxTime=1-12:00:00 MaxNodes=4 QOS=p_gpumedium
PartitionName=gpularge MaxTime=1-12:00:00 MaxNodes=10 QOS=p_gpularge
'
QOS_LIMITS='
p_gputest MaxTRESPerJob=gres/gpu=8
p_gpumedium MaxTRESPerJob=gres/gpu=4
p_gpularge MaxTRESPerJob=gres/gpu=40 MinTRESPerJob=gres/gpu=4
'
ACCOUNT=project_2001659                    # Puhti, Mahti and Roihu have their projects in common
FOREIGN_ACCOUNT=project_2001660
QOS_LIST=''

HOME_BASE=/users SCRATCH=/scratch/project_2001659
TREE_LINK=''
MODULES=modules
IMAGE='' APPTAINER=1
