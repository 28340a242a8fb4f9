whatis("PyTorch 2.9 (a stand-in: this machine's)")
prepend_path("PATH", "@PYTHON@/bin")
setenv("DS_ACCELERATOR", "cpu")
setenv("OMP_NUM_THREADS", "1")
