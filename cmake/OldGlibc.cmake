# Links a library so that it loads with glibc 2.28 and newer, whatever the machine has (wheels; packaging/linux).
set(PYF_OLD_GLIBC "" CACHE PATH "Folder made by packaging/linux/glibc_stubs.py; empty: the glibc of this machine is needed")
function(pyf_link_for_old_glibc target)
  if(PYF_OLD_GLIBC)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/packaging/linux/glibc_compat.cpp)
    target_link_directories(${target} BEFORE PRIVATE ${PYF_OLD_GLIBC})
    # without unused parts of libstdc++, which need functions of newer releases
    target_link_options(${target} PRIVATE LINKER:--gc-sections)
  endif()
endfunction()
