-- One task a core unless the job says otherwise: Mahti's limits and examples count cores, two threads each.
function slurm_cli_setup_defaults(options, early)
  options["hint"] = "nomultithread"
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
  return slurm.SUCCESS
end
