# cuda/libh5pyfilter_cuda.so: kernels for GPUs and their host side, which libh5pyfilter.so loads when a device is first
# needed (kernels/bridge/functions.hpp). In a folder of its own: HDF5 opens every lib*.so in a plugin's folder.
set(PYF_CUDA_ARCHITECTURES "" CACHE STRING
    "GPUs to compile for: CMake's list, 'release' for all supported ones; empty: this machine's, or 90 where it has none")
option(PYF_CUDA_FAST_COMPILE "Kernels that are compiled quickly and run slowly: to see that they compile" OFF)
if(PYF_CUDA_ARCHITECTURES STREQUAL "release")
  # a cubin runs on every GPU of its major number from its minor number on: Ada (8.9) runs that of 8.0
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90-real 100-real 120)
elseif(PYF_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${PYF_CUDA_ARCHITECTURES})
elseif(PYF_NVIDIA_SMI)
  set(CMAKE_CUDA_ARCHITECTURES native)
else()
  set(CMAKE_CUDA_ARCHITECTURES 90)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # opens the driver when it is first used: no GPU, no driver, no problem
find_package(CUDAToolkit REQUIRED)
add_library(h5pyfilter_cuda MODULE ${cuda_sources} kernels/bridge/cuda_library.cpp ${PYF_DEVICE_TABLE})
target_include_directories(h5pyfilter_cuda PRIVATE kernels . ${PYF_GENERATED})
target_compile_definitions(h5pyfilter_cuda PRIVATE PYF_CUDA_LIBRARY=1)
set_target_properties(h5pyfilter_cuda PROPERTIES PREFIX lib CUDA_VISIBILITY_PRESET hidden LINKER_LANGUAGE CXX
                      CUDA_RUNTIME_LIBRARY None LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda)
# no contraction and IEEE arithmetic here too
target_compile_options(
  h5pyfilter_cuda
  PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra>
          "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;--expt-relaxed-constexpr;-Xcompiler=-ffp-contract=off,-fno-math-errno,-fno-trapping-math,-Wall,-Wextra>"
          $<$<AND:$<BOOL:${PYF_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:--Werror=all-warnings>)
if(PYF_CUDA_FAST_COMPILE)
  include(CheckCompilerFlag)
  check_compiler_flag(CUDA -Ofc=max PYF_NVCC_COMPILES_FAST)  # nvcc 12.9 and later
  target_compile_options(h5pyfilter_cuda
                         PRIVATE $<$<AND:$<BOOL:${PYF_NVCC_COMPILES_FAST}>,$<COMPILE_LANGUAGE:CUDA>>:-Ofc=max>)
endif()
target_link_libraries(h5pyfilter_cuda PRIVATE CUDA::cudart_static Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(h5pyfilter_cuda PRIVATE -static-libstdc++ -static-libgcc LINKER:-z,nodelete LINKER:-z,relro
                    LINKER:-z,now LINKER:-z,noexecstack LINKER:--no-undefined LINKER:--exclude-libs,ALL)
pyf_link_for_old_glibc(h5pyfilter_cuda)
install(TARGETS h5pyfilter_cuda LIBRARY DESTINATION pyfilter/lib/cuda COMPONENT cuda)
message(STATUS "pyfilter: CPU levels ${levels}; kernels for GPUs ${CMAKE_CUDA_ARCHITECTURES}")
