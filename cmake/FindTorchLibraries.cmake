# libtorch as the Python that scripts/find-python chooses has it: headers and libraries, without nvcc and without
# torch's own CMake files, which bring CUDA into everything.
#
#   TorchLibraries::cpu    libtorch_cpu and libc10. Never libtorch: that one needs libtorch_cuda.
#   TorchLibraries::cuda   the CUDA run time and NVRTC, for which that torch was built (component cuda)
#   TorchLibraries::nccl   NCCL (component nccl)
#   TorchLibraries_VERSION, TorchLibraries_FOLDER
include(FindPackageHandleStandardArgs)

foreach(fact VERSION FOLDER)
  set(TorchLibraries_${fact} "")
endforeach()
if(MCKPT_PYTHON_FACTS MATCHES "torch ([0-9.]+)[^ ]* ([^;]+)")
  set(TorchLibraries_VERSION ${CMAKE_MATCH_1})
  set(TorchLibraries_FOLDER ${CMAKE_MATCH_2})
endif()

# TorchLibraries::<library> for lib/lib<library>.so of the wheel.
function(torch_library library)
  if(TARGET TorchLibraries::${library} OR NOT EXISTS ${TorchLibraries_FOLDER}/lib/lib${library}.so)
    return()
  endif()
  add_library(TorchLibraries::${library} SHARED IMPORTED)
  set_target_properties(TorchLibraries::${library} PROPERTIES
    IMPORTED_LOCATION ${TorchLibraries_FOLDER}/lib/lib${library}.so)
endfunction()

if(TorchLibraries_FOLDER AND NOT TARGET TorchLibraries::cpu)
  foreach(library c10 torch_cpu c10_cuda torch_cuda)
    torch_library(${library})
  endforeach()
  # libc10 itself says which std::string it was compiled for.
  file(STRINGS ${TorchLibraries_FOLDER}/lib/libc10.so new_abi REGEX "_ZN3c105Error.*__cxx11" LIMIT_COUNT 1)
  add_library(TorchLibraries::cpu INTERFACE IMPORTED)
  target_include_directories(TorchLibraries::cpu SYSTEM INTERFACE
    ${TorchLibraries_FOLDER}/include ${TorchLibraries_FOLDER}/include/torch/csrc/api/include)
  target_compile_definitions(TorchLibraries::cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=$<BOOL:${new_abi}>)
  target_link_libraries(TorchLibraries::cpu INTERFACE TorchLibraries::torch_cpu TorchLibraries::c10)
endif()

# find_cuda_library(name ROOT...) sets TorchLibraries_<NAME>, of a wheel, whose libraries have a version and nothing else,
# or of an installation.
function(find_cuda_library name)
  string(TOUPPER ${name} upper)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .so .so.13 .so.12 .so.2)
  find_library(TorchLibraries_${upper} ${name} HINTS ${ARGN} PATH_SUFFIXES lib lib64)
endfunction()

if(TARGET TorchLibraries::torch_cuda)
  # A wheel of CUDA 13 has its libraries beside it; an installed toolkit does as well.
  set(wheels ${TorchLibraries_FOLDER}/../nvidia)
  file(GLOB cuda_roots ${wheels}/cu[0-9]* ${wheels}/cuda_runtime ${wheels}/cuda_nvrtc)
  list(APPEND cuda_roots /usr/local/cuda)
  # The run time's wheel alone lacks the headers that its own header includes.
  find_path(TorchLibraries_CUDA_INCLUDE crt/host_defines.h HINTS ${cuda_roots} PATH_SUFFIXES include)
  find_path(TorchLibraries_NVRTC_INCLUDE nvrtc.h HINTS ${cuda_roots} PATH_SUFFIXES include)
  find_cuda_library(cudart ${cuda_roots})
  find_cuda_library(nvrtc ${cuda_roots})
  # Kernels have been loaded without the driver's own library since CUDA 12.8.
  set(loads_kernels "")
  if(TorchLibraries_CUDA_INCLUDE)
    file(STRINGS ${TorchLibraries_CUDA_INCLUDE}/cuda_runtime_api.h loads_kernels REGEX "cudaLibraryGetKernel" LIMIT_COUNT 1)
  endif()
  if(loads_kernels AND TorchLibraries_NVRTC_INCLUDE AND TorchLibraries_CUDART AND TorchLibraries_NVRTC)
    set(TorchLibraries_cuda_FOUND TRUE)
    if(NOT TARGET TorchLibraries::cuda)
      add_library(TorchLibraries::cuda INTERFACE IMPORTED)
      target_include_directories(TorchLibraries::cuda SYSTEM INTERFACE
        ${TorchLibraries_CUDA_INCLUDE} ${TorchLibraries_NVRTC_INCLUDE})
      target_link_libraries(TorchLibraries::cuda INTERFACE ${TorchLibraries_CUDART} ${TorchLibraries_NVRTC})
    endif()
  endif()
  find_path(TorchLibraries_NCCL_INCLUDE nccl.h HINTS ${wheels}/nccl PATH_SUFFIXES include)
  find_cuda_library(nccl ${wheels}/nccl)
  if(TorchLibraries_CUDA_INCLUDE AND TorchLibraries_NCCL_INCLUDE AND TorchLibraries_NCCL)
    set(TorchLibraries_nccl_FOUND TRUE)
    if(NOT TARGET TorchLibraries::nccl)
      add_library(TorchLibraries::nccl INTERFACE IMPORTED)
      target_include_directories(TorchLibraries::nccl SYSTEM INTERFACE
        ${TorchLibraries_NCCL_INCLUDE} ${TorchLibraries_CUDA_INCLUDE})
      target_link_libraries(TorchLibraries::nccl INTERFACE ${TorchLibraries_NCCL})
    endif()
  endif()
endif()

find_package_handle_standard_args(TorchLibraries REQUIRED_VARS TorchLibraries_FOLDER
  VERSION_VAR TorchLibraries_VERSION HANDLE_COMPONENTS)
