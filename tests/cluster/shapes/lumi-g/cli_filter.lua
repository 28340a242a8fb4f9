-- What LUMI's Slurm does before a job is sent: one task a core unless the job says otherwise, and no
-- --threads-per-core=2 ("your job is not accepted", LUMI training materials, 201-Slurm).
function slurm_cli_setup_defaults(options, early)
  options["hint"] = "nomultithread"
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  if options["threads-per-core"] == "2" then
    slurm.log_error("--threads-per-core=2 is not accepted, use --hint=multithread")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
  return slurm.SUCCESS
end
