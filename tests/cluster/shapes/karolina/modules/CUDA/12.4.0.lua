whatis("CUDA of EasyBuild (a stand-in: empty)")
