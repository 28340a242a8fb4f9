whatis("SingularityCE 4.1.5")
