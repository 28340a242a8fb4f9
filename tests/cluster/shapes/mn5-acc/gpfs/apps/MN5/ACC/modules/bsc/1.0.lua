whatis("Adds BSC's modules")
