# Which modules are built. For each, MCKPT_<MODULE> = AUTO builds it when its library is found, ON makes a missing
# library an error, OFF leaves it out. The decisions are printed at the end of configuring and told by `mckpt
# env`: MCKPT_<MODULE>_STATE is "built" or the reason why not.

# The Python of the tests, and of libtorch: "python PATH;torch VERSION FOLDER;numpy ..."
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/find-python OUTPUT_VARIABLE MCKPT_PYTHON_FACTS ERROR_QUIET)
string(REPLACE "\n" ";" MCKPT_PYTHON_FACTS "${MCKPT_PYTHON_FACTS}")
string(REGEX REPLACE "^python ([^;]*).*" "\\1" MCKPT_PYTHON "${MCKPT_PYTHON_FACTS}")

# pre: MCKPT_<module> is not OFF. `found` says whether its library is here, `version` what was found.
macro(mckpt_decide module found version missing)
  if(${found})
    set(MCKPT_${module}_STATE built)
    set(MCKPT_${module}_VERSION "${version}")
  elseif(MCKPT_${module} STREQUAL "AUTO")
    set(MCKPT_${module}_STATE "${missing}")
  else()
    message(FATAL_ERROR "MCKPT_${module}=${MCKPT_${module}}, but: ${missing}")
  endif()
endmacro()

foreach(module MPI TORCH CUDA NCCL HDF5)
  set(MCKPT_${module}_STATE "MCKPT_${module}=OFF")
  set(MCKPT_${module}_VERSION "")
endforeach()

if(NOT MCKPT_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  set(mpi_version "MPI ${MPI_CXX_VERSION}")
  if(MPI_CXX_FOUND)
    file(STRINGS ${MPI_CXX_HEADER_DIR}/mpi.h numbers REGEX "define OMPI_(MAJOR|MINOR|RELEASE)_VERSION")
    if(numbers)
      string(REGEX REPLACE "[^0-9;]+" "" numbers "${numbers}")
      string(REPLACE ";" "." mpi_version "Open MPI ${numbers}")
    endif()
  endif()
  mckpt_decide(MPI MPI_CXX_FOUND "${mpi_version}" "no MPI was found (libopenmpi-dev)")
endif()

if(NOT MCKPT_TORCH STREQUAL "OFF")
  find_package(TorchLibraries 2.6 QUIET)
  mckpt_decide(TORCH TorchLibraries_FOUND "${TorchLibraries_VERSION}, ${TorchLibraries_FOLDER}"
    "no torch 2.6 or newer with headers was found (scripts/bootstrap --torch)")
endif()

if(NOT MCKPT_CUDA STREQUAL "OFF")
  # Built without CUDA: the driver and NVRTC are found where the module runs. Beside torch they are found here.
  find_package(TorchLibraries 2.6 QUIET COMPONENTS cuda)
  mckpt_decide(CUDA TRUE "NVIDIA's driver, found at run time" "")
endif()

if(MCKPT_NCCL STREQUAL "AUTO" AND NOT MCKPT_CUDA_STATE STREQUAL "built")
  set(MCKPT_NCCL_STATE "useful only with the cuda module")
elseif(NOT MCKPT_NCCL STREQUAL "OFF")
  find_package(TorchLibraries 2.6 QUIET COMPONENTS nccl)
  mckpt_decide(NCCL TorchLibraries_nccl_FOUND "${TorchLibraries_NCCL}" "no NCCL with its header was found beside torch")
endif()

# HDF5 is used by a program of its own, tools/hdf5.
if(NOT MCKPT_HDF5 STREQUAL "OFF")
  find_path(MCKPT_HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
  find_library(MCKPT_HDF5_LIBRARY NAMES hdf5_serial hdf5)
  set(hdf5_found FALSE)
  set(hdf5_version "")
  if(MCKPT_HDF5_INCLUDE AND MCKPT_HDF5_LIBRARY)
    set(hdf5_found TRUE)
    file(STRINGS ${MCKPT_HDF5_INCLUDE}/H5public.h hdf5_version REGEX "define H5_VERS_INFO")
    string(REGEX REPLACE ".*HDF5 library version: ([0-9.]+).*" "\\1" hdf5_version "${hdf5_version}")
  endif()
  mckpt_decide(HDF5 hdf5_found "${hdf5_version}" "no HDF5 was found (libhdf5-dev)")
endif()

# mckpt_module(torch SOURCES torch_module.cc LINK TorchLibraries::cpu) builds libmckpt_torch.so beside the program.
function(mckpt_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(mckpt_${name} MODULE ${ARG_SOURCES})
  set_target_properties(mckpt_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(mckpt_${name} PRIVATE mckpt_flags mckpt_module_abi ${ARG_LINK})
  # Only the entry is seen from outside, only what is used is loaded, and a symbol that nobody defines is found now.
  # The linker of zig does not know --exclude-libs; its files have no libraries with names that could be seen.
  include(CheckLinkerFlag)
  check_linker_flag(CXX "-Wl,--exclude-libs,ALL" MCKPT_HAS_EXCLUDE_LIBS)
  target_link_options(mckpt_${name} PRIVATE $<$<BOOL:${MCKPT_HAS_EXCLUDE_LIBS}>:-Wl,--exclude-libs,ALL> -Wl,--as-needed -Wl,-z,defs)
  add_dependencies(program mckpt_${name})
endfunction()

function(mckpt_print_summary)
  foreach(module MPI TORCH CUDA NCCL HDF5)
    string(TOLOWER ${module} name)
    if(MCKPT_${module}_STATE STREQUAL "built")
      message(STATUS "mckpt: ${name}: ${MCKPT_${module}_VERSION}")
    else()
      message(STATUS "mckpt: ${name}: not built, ${MCKPT_${module}_STATE}")
    endif()
  endforeach()
endfunction()
