# The part of a build that goes into a wheel of Python: install component `wheel`. The Python package is pure
# Python over the C interface of libmckpt.so, so that one wheel serves every Python.
#
#   mckpt/*.py            the package
#   mckpt/lib/            libmckpt.so, and what program and library load or start on demand
#   mckpt/src/            sources of modules that are built where they run
#   <scripts>/mckpt       the program; lib/runtime/system/module_folders.cc finds mckpt/lib from there
#   <data>/share          completions of shells and man pages, which an environment has beside its bin
#
# `cmake --install build --component wheel --prefix FOLDER` makes the tree that `pip install --target FOLDER` makes.
if(DEFINED SKBUILD_SCRIPTS_DIR)
  set(wheel_scripts ${SKBUILD_SCRIPTS_DIR})
  set(wheel_package ${SKBUILD_PLATLIB_DIR}/mckpt)
  set(wheel_share ${SKBUILD_DATA_DIR}/share)
else()
  set(wheel_scripts bin)
  set(wheel_package mckpt)
  set(wheel_share share)
endif()

install(TARGETS mckpt RUNTIME DESTINATION ${wheel_scripts} COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES $<TARGET_FILE:mckpt_api> DESTINATION ${wheel_package}/lib RENAME libmckpt.so
  PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
  COMPONENT wheel EXCLUDE_FROM_ALL)
foreach(module mpi torch cuda nccl)
  if(TARGET mckpt_${module})
    install(TARGETS mckpt_${module} LIBRARY DESTINATION ${wheel_package}/lib COMPONENT wheel EXCLUDE_FROM_ALL)
  endif()
endforeach()
if(TARGET mckpt-hdf5)
  install(TARGETS mckpt-hdf5 RUNTIME DESTINATION ${wheel_package}/lib COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tools/python/mckpt/ DESTINATION ${wheel_package} COMPONENT wheel EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
if(NOT CMAKE_CROSSCOMPILING)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${wheel_share} COMPONENT wheel EXCLUDE_FROM_ALL)
endif()

# The sources of the modules that no wheel can have inside, which `python -m mckpt.modules` builds.
foreach(file runtime/comm/comm_table.h runtime/comm/mpi_module.cc runtime/modules/module_abi.h runtime/modules/module_guard.h
    runtime/modules/tensor_table.h live/device/torch_module.cc live/device/torch_tensors.cc live/device/torch_tensors.h
    live/cuda/nccl_module.cc live/cuda/nccl_table.h)
  cmake_path(GET file PARENT_PATH folder)
  install(FILES ${CMAKE_SOURCE_DIR}/lib/${file} DESTINATION ${wheel_package}/src/${folder} COMPONENT wheel EXCLUDE_FROM_ALL)
endforeach()

# Licences of the libraries that a wheel has inside; scripts/wheel-libraries collects them.
set(MCKPT_WHEEL_LICENSES "" CACHE PATH "folder of licences that the wheel has beside that of mckpt")
if(MCKPT_WHEEL_LICENSES AND DEFINED SKBUILD_METADATA_DIR)
  install(DIRECTORY ${MCKPT_WHEEL_LICENSES}/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
