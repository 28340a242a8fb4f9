whatis("Binds LUMI's file systems into every container (legacy images)")
setenv("SINGULARITY_BIND", "/pfs,/scratch,/projappl,/project,/flash,/appl,/var/spool/slurmd,/opt/cray,/usr/lib64/libcxi.so.1")
setenv("SLURM_MPI_TYPE", "pmi2")
