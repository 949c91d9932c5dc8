# Several sources compiled as one: half the time for a build that nobody repeats, so for ./dev test on a machine without
# ccache. It asks for different names in the unnamed namespaces of one folder.
option(FAIRLEAD_UNITY "compile the sources of the library and of the command in groups" OFF)
function(fairlead_group target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FAIRLEAD_UNITY} UNITY_BUILD_BATCH_SIZE 24)
endfunction()

# Precompiled headers save a third of a build that nobody repeats. They hide a missing include; ./dev check compiles each
# file without them.
set(FAIRLEAD_PRECOMPILED_HEADERS OFF CACHE STRING "compile the most included headers once: OFF, PROGRAMS (not the library) or ALL")

# All targets of a group are compiled with the same flags; the first one makes the headers that the others reuse.
function(fairlead_precompile target group)
  if(FAIRLEAD_PRECOMPILED_HEADERS STREQUAL OFF OR (FAIRLEAD_PRECOMPILED_HEADERS STREQUAL PROGRAMS AND group STREQUAL modules))
    return()
  endif()
  get_property(owner GLOBAL PROPERTY fairlead_precompiled_${group})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN} <fmt/format.h> <algorithm> <atomic> <chrono> <expected> <memory>
                              <span> <string> <unordered_map> <vector>)
    set_property(GLOBAL PROPERTY fairlead_precompiled_${group} ${target})
  endif()
endfunction()
