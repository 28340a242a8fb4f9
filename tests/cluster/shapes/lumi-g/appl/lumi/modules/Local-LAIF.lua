whatis("Adds the modules of the LUMI AI Factory")
prepend_path("MODULEPATH", "/appl/local/laifs/modules")
