# Refuses machines whose library would be wrong (docs/reliability.md, "Other machines").
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "pyfilter does not support big-endian processors (${CMAKE_SYSTEM_PROCESSOR}): frames are "
                      "little-endian, and encoder and decoder copy values and bit planes between frames and memory as "
                      "they are. Read and write big-endian datasets on a little-endian machine instead")
endif()
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  message(FATAL_ERROR "pyfilter does not support 32-bit processors or ABIs (${CMAKE_SYSTEM_PROCESSOR}): bounds of "
                      "64-bit values are computed with 128-bit integers (__int128), which compilers have for 64-bit "
                      "targets only, and a frame may be larger than 4 GiB")
endif()
