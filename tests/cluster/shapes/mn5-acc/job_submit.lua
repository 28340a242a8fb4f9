-- What MareNostrum 5 refuses before a job is queued: fewer than 20 cores for each GPU ("HARD REJECTED: Required cpus:
-- 80"), and --mem: the memory follows from the cores. The words about memory are the stand-in's own.
local CORES_A_GPU = 20
local NOT_GIVEN = 4294967294                 -- NO_VAL; NO_VAL16 is 65534

local function given(number)
  return number ~= nil and number ~= NOT_GIVEN and number ~= 65534 and number ~= 0
end

local function gpus_of(tres)
  return tonumber(((tres or ""):match("gpu[:%a%d_]*:(%d+)") or (tres or ""):match("gpu[:=](%d+)"))) or 0
end

function slurm_job_submit(job, partitions, user)
  if job.min_mem_per_node ~= nil or job.min_mem_per_cpu ~= nil then
    slurm.log_user("HARD REJECTED: --mem, --mem-per-cpu and --mem-per-gpu are not allowed; memory follows from the cores")
    return slurm.ERROR
  end
  local nodes = given(job.min_nodes) and job.min_nodes or 1
  local gpus = gpus_of(job.tres_per_node) * nodes
  if gpus == 0 then gpus = gpus_of(job.tres_per_job) end
  local cores = given(job.cpus_per_task) and job.cpus_per_task or 1
  if given(job.ntasks_per_node) then cores = cores * job.ntasks_per_node * nodes
  elseif given(job.num_tasks) then cores = cores * job.num_tasks end
  if job.shared ~= 0 and cores < gpus * CORES_A_GPU then
    slurm.log_user("HARD REJECTED: Required cpus: " .. gpus * CORES_A_GPU)
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, user)
  return slurm.SUCCESS
end

return slurm.SUCCESS
