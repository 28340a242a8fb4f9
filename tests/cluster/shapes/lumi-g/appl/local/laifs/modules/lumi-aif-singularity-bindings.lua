whatis("Binds LUMI's file systems into every container, and lets srun start MPI inside")
setenv("SINGULARITY_BIND", "/pfs,/scratch,/projappl,/project,/flash,/appl,/var/spool/slurmd")
setenv("SLURM_MPI_TYPE", "pmi2")
