# cmake --install: what other programs and a user's machine get of a build.
#
#   bin/mckpt                       the program
#   lib/libmckpt.so                 the library, with include/mckpt/*.h
#   lib/python/mckpt/               the Python package, which finds lib/libmckpt.so
#   lib/cmake/mckpt/                find_package(mckpt) gives the target mckpt::mckpt
#   share/                          completions of bash, zsh and fish, and man pages
#   lib/mckpt/                      modules and mckpt-hdf5, which program and library load or start on demand
#
# The tree may be moved as a whole: its files find each other by their places.
include(CMakePackageConfigHelpers)

install(TARGETS mckpt RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS mckpt_api EXPORT mckpt_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY lib/api/mckpt lib/options/mckpt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY tools/python/mckpt DESTINATION ${CMAKE_INSTALL_LIBDIR}/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(NOT CMAKE_CROSSCOMPILING)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()

foreach(module mpi torch cuda nccl)
  if(TARGET mckpt_${module})
    install(TARGETS mckpt_${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mckpt)
  endif()
endforeach()
# A module finds libtorch and NCCL where they were when it was built.
foreach(module torch cuda)
  if(TARGET mckpt_${module})
    set_target_properties(mckpt_${module} PROPERTIES INSTALL_RPATH ${TorchLibraries_FOLDER}/lib)
  endif()
endforeach()
if(TARGET mckpt_nccl)
  get_filename_component(nccl_folder ${TorchLibraries_NCCL} DIRECTORY)
  set_target_properties(mckpt_nccl PROPERTIES INSTALL_RPATH ${nccl_folder})
endif()
if(TARGET mckpt-hdf5)
  install(TARGETS mckpt-hdf5 RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/mckpt)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/mckpt)
install(EXPORT mckpt_targets NAMESPACE mckpt:: FILE mckptTargets.cmake DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/mckptConfig.cmake.in
  ${CMAKE_BINARY_DIR}/generated/mckptConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/mckptConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/mckptConfig.cmake ${CMAKE_BINARY_DIR}/generated/mckptConfigVersion.cmake
  DESTINATION ${package_folder})
