# Precompiled headers save a third of a build that nobody repeats. ALL is for the sanitizer builds; the release build takes
# TESTS at most, so that a file of the library which forgets an include fails there.
set(FAIRLEAD_PRECOMPILED_HEADERS OFF CACHE STRING "compile the most included headers once: OFF, TESTS or ALL")

# All targets of a group are compiled with the same flags; the first one makes the headers that the others reuse.
function(fairlead_precompile target group)
  if(NOT FAIRLEAD_PRECOMPILED_HEADERS STREQUAL ALL AND NOT (FAIRLEAD_PRECOMPILED_HEADERS STREQUAL TESTS AND group STREQUAL tests))
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
