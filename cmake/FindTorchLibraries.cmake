# libtorch as the Python that scripts/find-python chooses has it: headers and libraries, without nvcc and without
# torch's own CMake files, which bring CUDA into everything.
#
#   TorchLibraries::cpu    libtorch_cpu and libc10. Never libtorch: that one needs libtorch_cuda.
#   TorchLibraries::cuda   libtorch_cuda and libc10_cuda, and the CUDA run time (component cuda)
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

if("cuda" IN_LIST TorchLibraries_FIND_COMPONENTS AND TARGET TorchLibraries::torch_cuda)
  # A wheel of CUDA 13 has its run time beside it; an installed toolkit does as well.
  file(GLOB cuda_roots ${TorchLibraries_FOLDER}/../nvidia/cu[0-9]* ${TorchLibraries_FOLDER}/../nvidia/cuda_runtime)
  list(APPEND cuda_roots /usr/local/cuda)
  # The run time's wheel alone lacks the headers that its own header includes.
  find_path(TorchLibraries_CUDA_INCLUDE crt/host_defines.h HINTS ${cuda_roots} PATH_SUFFIXES include)
  set(saved_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
  set(CMAKE_FIND_LIBRARY_SUFFIXES .so .so.13 .so.12)
  find_library(TorchLibraries_CUDART cudart HINTS ${cuda_roots} PATH_SUFFIXES lib lib64)
  set(CMAKE_FIND_LIBRARY_SUFFIXES ${saved_suffixes})
  if(TorchLibraries_CUDA_INCLUDE AND TorchLibraries_CUDART)
    set(TorchLibraries_cuda_FOUND TRUE)
    if(NOT TARGET TorchLibraries::cuda)
      add_library(TorchLibraries::cuda INTERFACE IMPORTED)
      target_include_directories(TorchLibraries::cuda SYSTEM INTERFACE ${TorchLibraries_CUDA_INCLUDE})
      target_link_libraries(TorchLibraries::cuda INTERFACE TorchLibraries::torch_cuda TorchLibraries::c10_cuda
        TorchLibraries::cpu ${TorchLibraries_CUDART})
    endif()
  endif()
endif()

find_package_handle_standard_args(TorchLibraries REQUIRED_VARS TorchLibraries_FOLDER
  VERSION_VAR TorchLibraries_VERSION HANDLE_COMPONENTS)
