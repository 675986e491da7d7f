# The settings that all targets of this project share.

find_package(Threads REQUIRED)

add_library(mckpt_flags INTERFACE)
target_compile_options(mckpt_flags INTERFACE -Wall -Wextra -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion)
# Files that are compiled together see each other's unnamed namespaces, which compilers take for shadowing.
set(mckpt_unified $<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>)
target_compile_options(mckpt_flags INTERFACE $<$<NOT:${mckpt_unified}>:-Wshadow>)
if(MCKPT_WERROR)
  target_compile_options(mckpt_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ takes a file that is not the main one for a header.
  target_compile_options(mckpt_flags INTERFACE $<${mckpt_unified}:-Wno-subobject-linkage>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # With precompiled standard headers g++ 12 reports bounds inside std::string that are not crossed.
  target_compile_options(mckpt_flags INTERFACE -Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND MCKPT_SANITIZE)
  # The code that sanitizers insert makes g++ doubt that members of <regex> and <functional> are set.
  target_compile_options(mckpt_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(MCKPT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(MCKPT_SANITIZE)
  add_compile_options(-fsanitize=${MCKPT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MCKPT_SANITIZE})
  # UBSan describes each check by pointers: 1.5 million that a program which may lie anywhere sets anew at each start, in most of
  # the time that a short test takes.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()

# Checks of each access through a pointer cost a quarter of a sanitized build, and ASan sees most of what they find. They stay where
# the bytes of strangers are parsed.
set(mckpt_parsers mckpt_core mckpt_io mckpt_hf mckpt-hdf5)
function(mckpt_fewer_checks target)
  if(MCKPT_SANITIZE AND NOT target IN_LIST mckpt_parsers)
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
endfunction()

# Headers of <source dir>/<folder> become visible as "<folder>/x.h", to those that link to the target and to nobody
# else: each target has an include root of its own that holds one link.
function(mckpt_include_root target folder)
  set(root ${CMAKE_BINARY_DIR}/include/${target})
  get_filename_component(parent ${root}/${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${folder} SYMBOLIC)
  target_include_directories(${target} PUBLIC ${root})
endfunction()

# Where a build is unified (CMAKE_UNITY_BUILD), says which files of a target are compiled together: those that give no name
# twice. Configure again when a file gets a name that another one has.
# The program mckpt_broken (tests/support/broken_plan.cc) replaces the objects of these, so each is compiled alone.
set(mckpt_compiled_alone jobs/box_moves.cc layers/layer_migration.cc models/qwen3_moe.cc rules/row.cc store/store.cc)
find_program(MCKPT_UNITY_PYTHON python3)
mark_as_advanced(MCKPT_UNITY_PYTHON)
function(mckpt_unify target)
  get_target_property(unified ${target} UNITY_BUILD)
  set(most ${CMAKE_UNITY_BUILD_BATCH_SIZE})
  if(NOT most)
    set(most 10)
  endif()
  if(NOT unified)
    return()
  elseif(NOT MCKPT_UNITY_PYTHON)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cc$")
  list(REMOVE_ITEM sources ${mckpt_compiled_alone})
  execute_process(COMMAND ${MCKPT_UNITY_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/unity_groups.py ${CMAKE_SOURCE_DIR}
    ${CMAKE_CURRENT_SOURCE_DIR} ${most} ${sources} OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line ${lines})
    string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${target}_${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# The standard headers that most files include: compiled once for each target, they save a third of a build.
set(mckpt_std_headers <algorithm> <array> <charconv> <concepts> <functional> <map> <memory> <mutex> <optional> <span>
    <string> <string_view> <unordered_map> <unordered_set> <utility> <vector>)

# mckpt_library(mckpt_io io SOURCES a.cc b.cc LINK PRIVATE ZLIB::ZLIB PUBLIC mckpt_core)
function(mckpt_library target folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${target} STATIC ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # No function is replaced when the program is loaded. g++ has to be told, or it inlines none that is not in a header.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  mckpt_include_root(${target} ${folder})
  target_link_libraries(${target} PRIVATE mckpt_flags ${ARG_LINK})
  target_precompile_headers(${target} PRIVATE ${mckpt_std_headers})
  mckpt_fewer_checks(${target})
  mckpt_unify(${target})
endfunction()

# Adds a folder that needs a package: AUTO where the package is found, ON or else fails, OFF never.
function(mckpt_optional_folder folder option package from)
  if(${option} STREQUAL "OFF")
    return()
  endif()
  find_package(${package} QUIET)
  if(${package}_FOUND)
    add_subdirectory(${folder})
  elseif(${option} STREQUAL "AUTO")
    message(STATUS "mckpt: ${folder}: not built, ${package} was not found (${from})")
  else()
    message(FATAL_ERROR "${option}=${${option}}, but ${package} was not found (${from})")
  endif()
endfunction()
