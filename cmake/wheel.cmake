# What a wheel of Python has of a build: component wheel, whose root is the root of the wheel. The Python package is pure
# Python over the C interface of libmckpt.so, so that one wheel serves every Python.
#
#   mckpt/*.py, py.typed      the package
#   mckpt/lib/                libmckpt.so, and what program and library load or start on demand
#   <scripts>/mckpt           the program; tools/process/module_path.cc finds mckpt/lib from there
if(DEFINED SKBUILD_SCRIPTS_DIR)
  set(wheel_scripts ${SKBUILD_SCRIPTS_DIR})
  set(wheel_package ${SKBUILD_PLATLIB_DIR}/mckpt)
else()
  # `cmake --install build --component wheel --prefix FOLDER`, for tests of what a wheel would have.
  set(wheel_scripts mckpt-${PROJECT_VERSION}.data/scripts)
  set(wheel_package mckpt)
endif()

install(TARGETS mckpt RUNTIME DESTINATION ${wheel_scripts} COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES $<TARGET_FILE:mckpt_api> DESTINATION ${wheel_package}/lib RENAME libmckpt.so COMPONENT wheel EXCLUDE_FROM_ALL)
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
