whatis("SingularityCE 3.11.5")
