whatis("OpenMPI of EasyBuild (a stand-in: what this machine has)")
